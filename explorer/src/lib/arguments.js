// Arguments of a call as people type them: 41, 0xab…, [1, 2], "a, b". Values stay text, so that no number is rounded.
import { isArrayType } from "./abi.js";

/// The values for the types, as texts and lists of texts.
export function parseArguments(text, inputs) {
    if (!inputs.length) {
        if (text.trim()) throw new Error("this function takes no arguments");
        return [];
    }
    const values = new Reader(text).whole();
    // The whole list may be in brackets too, as in JSON.
    const isWrapped = values.length === 1 && Array.isArray(values[0]) && !(inputs.length === 1 && isArrayType(inputs[0].type));
    return isWrapped ? values[0] : values;
}

class Reader {
    #text;
    #at = 0;

    constructor(text) {
        this.#text = text;
    }

    whole() {
        const values = this.#list();
        if (this.#at < this.#text.length) throw new Error(this.#text[this.#at] === "]" ? "a ] has no [ before it" : `a comma is missing before ${this.#text.slice(this.#at, this.#at + 10)}`);
        return values;
    }

    #list() {
        const values = [this.#value()];
        while (this.#take(",")) values.push(this.#value());
        return values;
    }

    #value() {
        this.#skipSpace();
        if (this.#take("[")) return this.#inBrackets();
        return this.#text[this.#at] === '"' ? this.#quoted() : this.#bare();
    }

    #inBrackets() {
        this.#skipSpace();
        if (this.#take("]")) return [];
        const values = this.#list();
        if (!this.#take("]")) throw new Error("a [ has no ] after it");
        return values;
    }

    #quoted() {
        const [quoted] = this.#text.slice(this.#at).match(/^"(?:[^"\\]|\\.)*"/) ?? [];
        if (!quoted) throw new Error('a " has no " after it');
        this.#at += quoted.length;
        return JSON.parse(quoted);
    }

    #bare() {
        const [bare] = this.#text.slice(this.#at).match(/^[^,[\]"]*/);
        this.#at += bare.length;
        return bare.trim();
    }

    #take(letter) {
        this.#skipSpace();
        if (this.#text[this.#at] !== letter) return false;
        this.#at += 1;
        return true;
    }

    #skipSpace() {
        while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
    }
}
