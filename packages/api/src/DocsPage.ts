import { hash, randomBytes } from "node:crypto"
import { Effect, type Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { fail } from "@tidegate/model/GatewayError"
import { CodedBytes } from "./CodedBytes.ts"

/**
 * The configuration of Scalar. It can call services of its vendor (proxy, sharing, agent, telemetry, fonts): each is off here,
 * and the page's policy allows connections to this gateway only.
 */
const configuration = {
  _integration: "html",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  authentication: { preferredSecurityScheme: "bearer" }
}

/** Only scripts with the answer's own nonce run: nothing else from this origin, and nothing inline. */
const policyWith = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    // Scalar writes its styles into the page.
    "style-src 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'"
  ].join("; ")

/** The page at `/docs` or `/docs/`. Its links are relative, so that it also works below a prefix. */
const pageAt = (path: string, script: string, nonce: string): string => {
  const root = path.endsWith("/") ? "../" : ""
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Tidegate control API</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
  </head>
  <body>
    <p><a href="${root}docs/guides/">The manual of this version</a></p>
    <div id="reference"></div>
    <noscript>This page needs JavaScript. The same in JSON: <a href="${root}openapi.json">openapi.json</a></noscript>
    <script src="${root}docs/${script}" nonce="${nonce}"></script>
    <script nonce="${nonce}">
      Scalar.createApiReference(document.getElementById("reference"), ${JSON.stringify({
        ...configuration,
        url: `${root}openapi.json`
      })})
    </script>
  </body>
</html>
`
}

/** Scalar's script as part of effect, which uses it inline and does not export it. Loaded with the first request for the page. */
const loadScript = async () => {
  const module = import.meta.resolve("effect/http-api/HttpApiScalar")
  const { javascript } = (await import(new URL("internal/httpApiScalar.js", module).href)) as { javascript: string }
  const bytes = Buffer.from(javascript)
  return {
    name: `scalar-${hash("sha256", bytes, "hex").slice(0, 16)}.js`,
    file: new CodedBytes(bytes, "text/javascript; charset=utf-8")
  }
}

/** The answer to a program at `/`; a browser is redirected to the dashboard. */
const index = {
  name: "Tidegate",
  dashboard: "/dashboard/",
  docs: "/docs",
  guides: "/docs/guides/",
  openapi: "/openapi.json",
  api: "/v1",
  health: "/healthz"
}

/** `GET /docs`, a page to read and try the API; its script, whose name changes with its content; and `GET /`. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const script = yield* Effect.cached(Effect.promise(loadScript))

    yield* router.add("GET", "/", (request) => {
      const byBrowser = (request.headers["accept"] ?? "").includes("text/html")
      const response = byBrowser ? HttpServerResponse.redirect("dashboard/") : HttpServerResponse.jsonUnsafe(index)
      return Effect.succeed(HttpServerResponse.setHeader(response, "vary", "accept"))
    })

    yield* router.add("GET", "/docs", (request) =>
      Effect.map(script, ({ name }) => {
        const nonce = randomBytes(16).toString("base64")
        const path = request.url.split("?", 1)[0] ?? ""
        return HttpServerResponse.html(pageAt(path, name, nonce)).pipe(
          HttpServerResponse.setHeader("content-security-policy", policyWith(nonce))
        )
      })
    )

    yield* router.add(
      "GET",
      "/docs/:script",
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const { file, name } = yield* script
        const { params } = yield* HttpRouter.RouteContext
        if (params["script"] !== name) return yield* Effect.die(fail("ROUTE_NOT_FOUND", "the page has a new script"))
        return yield* Effect.promise(() => file.answer(headers["accept-encoding"] ?? ""))
      })
    )
  })
)
