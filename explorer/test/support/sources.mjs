// Loads sources of the explorer as the build does, with `virtual:abi` and Svelte, but without a browser or a node.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createServer } from "vite";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../..");

/// Opens the sources: `load(file)` gives a module, `html(file, props)` the text of a component. Ends with `close()`.
export async function openSources() {
    pretendBrowser();
    const server = await createServer({ root, logLevel: "error", appType: "custom", server: { middlewareMode: true, hmr: false, ws: false, watch: null }, optimizeDeps: { noDiscovery: true } });
    const load = (file) => server.ssrLoadModule(`/src/${file}`);
    const html = async (file, props) => {
        const { render } = await server.ssrLoadModule("svelte/server");
        const { default: component } = await load(file);
        return render(component, { props }).body.replace(/<!--.*?-->/g, "");
    };
    return { load, html, close: () => server.close() };
}

/// What the store of the chain wants when it is loaded. Nothing answers, and no timer keeps the test alive.
function pretendBrowser() {
    const location = { protocol: "http:", host: "127.0.0.1:1", origin: "http://127.0.0.1:1", hash: "" };
    globalThis.window ??= Object.assign(new EventTarget(), { location });
    globalThis.WebSocket = class { static OPEN = 1; };
    globalThis.localStorage ??= { getItem: () => null, setItem() {} };
    const interval = globalThis.setInterval;
    globalThis.setInterval = (...args) => interval(...args).unref();
}
