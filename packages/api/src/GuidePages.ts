import { readdir, readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { Effect, type Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import MarkdownIt from "markdown-it"
import { fail } from "@tidegate/model/GatewayError"
import { headingAnchor } from "./HeadingAnchor.ts"

/** The pages of this version: they are part of the source. */
const folder = fileURLToPath(new URL("../../../docs/", import.meta.url))

/** Nothing runs in these pages. */
const policy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const style =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}" +
  "pre,code{font-family:ui-monospace,monospace;font-size:.9em;background:#f3f4f6}pre{padding:.8rem;overflow:auto}" +
  "table{border-collapse:collapse;display:block;overflow:auto}td,th{border:1px solid #d0d7de;padding:.3rem .6rem;text-align:left}"

const markdown = new MarkdownIt({ html: false, linkify: false })
markdown.renderer.rules["heading_open"] = (tokens, index, options, _, self) => {
  const text = (tokens[index + 1]?.children ?? []).map(({ content }) => content).join("")
  tokens[index]!.attrSet("id", headingAnchor(text))
  return self.renderToken(tokens, index, options)
}

const escaped = (text: string): string => markdown.utils.escapeHtml(text)

const pageOf = (title: string, body: string): string =>
  `<!doctype html>
<html lang="en">
<head><meta charset="utf-8" /><title>${escaped(title)}</title><meta name="viewport" content="width=device-width, initial-scale=1" />
<link rel="icon" href="data:," /><style>${style}</style></head>
<body>${body}</body>
</html>
`

/** The names of the pages and pictures below the folder: `cli.md`, `destinations/email.md`. Requests for other names are not found. */
const pagesIn = async (): Promise<ReadonlySet<string>> => {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  return new Set(
    found
      .filter((entry) => entry.isFile() && /\.(?:md|png|webp)$/.test(entry.name))
      .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length).replaceAll("\\", "/").replace(/^\//, ""))
  )
}

const titleOf = (text: string, name: string): string => /^# (.+)$/m.exec(text)?.[1] ?? name

/** The pages for users. Changelog, decisions and generated pages are linked from them. */
const isGuide = (name: string): boolean => !name.includes("/") && name.endsWith(".md")

/**
 * `GET /docs/guides/`, a list of the pages of `docs/`, and each page below it: the manual of the running version, available
 * without a checkout. No sign-in is needed: the pages contain nothing about an installation.
 */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const names = yield* Effect.cached(Effect.promise(pagesIn))
    /** At most as many entries as there are pages. */
    const rendered = new Map<string, string>()
    const textOf = (name: string) => Effect.promise(() => readFile(`${folder}${name}`, "utf8"))

    const page = Effect.fnUntraced(function* (name: string) {
      const there = rendered.get(name)
      if (there !== undefined) return there
      const text = yield* textOf(name)
      const up = "../".repeat(name.split("/").length - 1)
      const html = pageOf(titleOf(text, name), `<p><a href="${up}./">All pages</a></p>${markdown.render(text)}`)
      rendered.set(name, html)
      return html
    })

    const list = yield* Effect.cached(
      Effect.gen(function* () {
        const guides = [...(yield* names)].filter(isGuide).toSorted()
        const items = yield* Effect.forEach(guides, (name) =>
          Effect.map(textOf(name), (text) => `<li><a href="${name}">${escaped(titleOf(text, name))}</a></li>`)
        )
        const body = `<h1>Tidegate</h1><p><a href="../">The API, to read and to try</a></p><ul>${items.join("")}</ul>`
        return pageOf("Tidegate: all pages", body)
      })
    )

    const answer = (html: string) =>
      HttpServerResponse.setHeader(HttpServerResponse.html(html), "content-security-policy", policy)

    // The folder itself arrives here with and without its slash.
    yield* router.add("GET", "/docs/guides/*", (request) =>
      Effect.gen(function* () {
        const [, path] = /\/docs\/guides(?:\/(.*))?$/.exec(request.url.split("?", 1)[0] ?? "") ?? []
        // Links in the pages are relative to the folder.
        if (path === undefined) return HttpServerResponse.redirect("guides/")
        if (path === "") return answer(yield* list)
        if (!(yield* names).has(path)) return yield* Effect.die(fail("ROUTE_NOT_FOUND", "there is no such page"))
        const [, format] = /\.(png|webp)$/.exec(path) ?? []
        if (format !== undefined) {
          const bytes = yield* Effect.promise(() => readFile(`${folder}${path}`))
          return HttpServerResponse.uint8Array(bytes, { contentType: `image/${format}` })
        }
        return answer(yield* page(path))
      })
    )
  })
)
