import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

/** Read by Vite and by svelte-check: runes everywhere, TypeScript in components. */
export default {
  preprocess: vitePreprocess(),
  compilerOptions: { runes: true },
};
