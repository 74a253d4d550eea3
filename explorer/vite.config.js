import { defineConfig } from "vite";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { abiPlugin } from "./build/abi.mjs";

// `npm run dev` serves the sources and passes everything else to a node.
const node = process.env.ALMANAC_RPC ?? "http://127.0.0.1:8545";

export default defineConfig({
    plugins: [svelte(), abiPlugin()],
    build: {
        // What every browser of the last three years runs.
        target: "es2022",
        modulePreload: { polyfill: false },
        // Every byte comes from this node, also small ones: the content policy allows no inline script.
        assetsInlineLimit: 0,
        reportCompressedSize: false,
        chunkSizeWarningLimit: 400,
    },
    server: {
        proxy: {
            "/rpc": { target: node, ws: true, rewrite: () => "/" },
            "/health": node,
            "/metrics": node,
        },
    },
});
