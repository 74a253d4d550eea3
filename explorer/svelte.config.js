export default {
    compilerOptions: {
        // A style that a component sets is a property, never an attribute: the content policy forbids those.
        runes: true,
    },
};
