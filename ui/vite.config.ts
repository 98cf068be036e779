import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

/** The page for an editor's webview: its extension writes the HTML, so the names of its script and its style are fixed. */
const EDITOR = {
  input: "src/editor.ts",
  output: { entryFileNames: "page.js", assetFileNames: "page[extname]" },
};

/**
 * The page is built into the Python package, which serves it under a strict content policy:
 * no inline script, nothing from another origin. Hence no inlined assets and no preload polyfill.
 */
export default defineConfig(({ mode }) => ({
  plugins: [svelte()],
  base: mode === "editor" ? "./" : "/",
  publicDir: mode === "editor" ? false : "public",
  build: {
    ...(mode === "editor" ? { rolldownOptions: EDITOR, cssCodeSplit: false } : {}),
    outDir: "../src/handrail/server/static",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
  },
}));
