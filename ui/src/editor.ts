import "./style.css";
import "./editor/editor.css";

import { mount } from "svelte";

import Editor from "./editor/Editor.svelte";
import { editorHost } from "./editor/editorHost.svelte.ts";

/** The entry of the page in an editor's webview; main.ts is that of the daemon's page. */
document.documentElement.dataset.editor = "";
editorHost.start();

const target = document.getElementById("app");
if (!target) throw new Error("The page has no #app element to mount on.");
mount(Editor, { target });
