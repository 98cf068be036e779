import "./style.css";
import "./state/settings.svelte.ts";

import { mount } from "svelte";

/** The gallery and the page are separate bundles. */
const { default: Root } = await (location.pathname.startsWith("/gallery") ? import("./gallery/Gallery.svelte") : import("./App.svelte"));

const target = document.getElementById("app");
if (!target) throw new Error("The page has no #app element to mount on.");

mount(Root, { target });
