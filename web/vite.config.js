// Builds the page into one file: src/page/page.html of the repository, which the native program embeds.
import { defineConfig } from "vite";

// Puts script and style into the html, the script last and as a plain one: a page that is opened from disk may load nothing.
function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const html = bundle["index.html"];
      let scripts = "";
      let styles = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (name === "index.html") continue;
        if (part.type === "chunk") scripts += part.code;
        else if (name.endsWith(".css")) styles += part.source;
        delete bundle[name];
      }
      html.source = html.source
        .replace(/<script type="module"[^>]*><\/script>\s*/, "")
        .replace(/<link rel="stylesheet"[^>]*>\s*/, "")
        .replace("</head>", () => `<style>${styles.trim()}</style>\n</head>`)
        .replace("</body>", () => `<script>${scripts.trim().replace(/<\/script/g, "<\\/script")}</script>\n</body>`);
      html.fileName = "page.html";
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  build: {
    target: "es2022",
    outDir: process.env.AIT_PAGE_DIR ?? "../src/page",
    emptyOutDir: false,
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    rollupOptions: { output: { format: "iife" } },
  },
});
