/** The language of a file, by its name; grammars are loaded on demand. Unknown names are plain text. */
import type { Language, StreamParser } from "@codemirror/language";

import type { Token } from "./codePieces.ts";

type Load = () => Promise<Language>;

const legacy = (load: () => Promise<StreamParser<unknown>>): Load => async () => {
  const [{ StreamLanguage }, parser] = await Promise.all([import("@codemirror/language"), load()]);
  return StreamLanguage.define(parser);
};
const script = (typescript: boolean, jsx: boolean): Load => async () => (await import("@codemirror/lang-javascript")).javascript({ typescript, jsx }).language;

const LOADS = {
  c: async () => (await import("@codemirror/lang-cpp")).cppLanguage,
  css: async () => (await import("@codemirror/lang-css")).cssLanguage,
  docker: legacy(async () => (await import("@codemirror/legacy-modes/mode/dockerfile")).dockerFile),
  go: async () => (await import("@codemirror/lang-go")).goLanguage,
  html: async () => (await import("@codemirror/lang-html")).html({ selfClosingTags: true }).language,
  java: async () => (await import("@codemirror/lang-java")).javaLanguage,
  javascript: script(false, true),
  json: async () => (await import("@codemirror/lang-json")).jsonLanguage,
  markdown: async () => (await import("@codemirror/lang-markdown")).markdownLanguage,
  python: async () => (await import("@codemirror/lang-python")).pythonLanguage,
  ruby: legacy(async () => (await import("@codemirror/legacy-modes/mode/ruby")).ruby),
  rust: async () => (await import("@codemirror/lang-rust")).rustLanguage,
  shell: legacy(async () => (await import("@codemirror/legacy-modes/mode/shell")).shell),
  sql: async () => (await import("@codemirror/lang-sql")).StandardSQL.language,
  toml: legacy(async () => (await import("@codemirror/legacy-modes/mode/toml")).toml),
  tsx: script(true, true),
  typescript: script(true, false),
  yaml: async () => (await import("@codemirror/lang-yaml")).yamlLanguage,
} satisfies Record<string, Load>;

export type LanguageName = keyof typeof LOADS;

const ENDINGS: Record<string, LanguageName> = {
  bash: "shell", c: "c", cc: "c", cfg: "toml", cjs: "javascript", cpp: "c", cs: "java", css: "css", cxx: "c", go: "go", h: "c", hpp: "c", htm: "html",
  html: "html", ini: "toml", java: "java", js: "javascript", json: "json", jsonc: "javascript", jsx: "javascript", kt: "java", less: "css", markdown: "markdown",
  md: "markdown", mjs: "javascript", mts: "typescript", py: "python", pyi: "python", rb: "ruby", rs: "rust", scss: "css", sh: "shell", sql: "sql", svelte: "html",
  svg: "html", toml: "toml", ts: "typescript", tsx: "tsx", vue: "html", xml: "html", yaml: "yaml", yml: "yaml", zsh: "shell",
};
const NAMES: Record<string, LanguageName> = {
  ".bash_profile": "shell", ".bashrc": "shell", ".profile": "shell", ".zshrc": "shell", "cargo.lock": "toml", containerfile: "docker", dockerfile: "docker", gemfile: "ruby", rakefile: "ruby",
};

export function languageOf(path: string): LanguageName | null {
  const name = (path.split("/").at(-1) ?? "").toLowerCase();
  const ending = name.split(".").slice(1).at(-1) ?? "";
  return own(NAMES, name) ?? own(ENDINGS, ending) ?? null;
}

/** Names used on code blocks that are not file extensions. */
const SPOKEN: Record<string, string> = {
  console: "sh", "c++": "cpp", golang: "go", javascript: "js", kotlin: "kt", python: "py", ruby: "rb", rust: "rs", shell: "sh", typescript: "ts",
};

/** A file name with the extension of a code block's language. */
export function fenceLanguage(language: string): string {
  const name = language.toLowerCase();
  return name === "dockerfile" ? name : `code.${own(SPOKEN, name) ?? name}`;
}

export function loadLanguage(name: LanguageName): Promise<Language> {
  return LOADS[name]();
}

/** The tokens of each line of these texts; empty for a file without a known language, null for a text that is too long. */
export async function highlightTexts(path: string, texts: readonly string[], off: AbortSignal): Promise<(Token[][] | null)[]> {
  const name = languageOf(path);
  if (!name) return [];
  const [language, { highlightLines }] = await Promise.all([loadLanguage(name), import("./highlight.ts")]);
  const all: (Token[][] | null)[] = [];
  for (const text of texts) all.push(await highlightLines(text, language, off));
  return all;
}

function own<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
