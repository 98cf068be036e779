import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

/**
 * The page is built into the Python package, which serves it under a strict content policy:
 * no inline script, nothing from another origin. Hence no inlined assets and no preload polyfill.
 */
export default defineConfig({
  plugins: [svelte()],
  base: "/",
  build: {
    outDir: "../src/handrail/server/static",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
  },
});
