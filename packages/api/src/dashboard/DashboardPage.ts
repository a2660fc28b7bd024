import { randomBytes } from "node:crypto"
import { readdir, readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { Clock, Duration, Effect, type Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { fail } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import { CodedBytes } from "../CodedBytes.ts"
import { Credentials } from "../Credentials.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { begun, ended } from "./BrowserSession.ts"
import { ofOwnPage } from "./OwnPage.ts"
import { BrowserSessionKey } from "./SealedCookies.ts"

/** The dashboard's files, which `apps/dashboard/build.mjs` makes before the gateway starts. */
const folder = fileURLToPath(new URL("../../../../apps/dashboard/dist/", import.meta.url))

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}

interface Bundle {
  /** The page, with `{{nonce}}` where its script names the nonce and `{{base}}` where it names the folder. */
  readonly page: string
  readonly files: ReadonlyMap<string, CodedBytes>
}

/** Null: it has not been built. A build may replace it meanwhile, and leaves the files of the page that was read before them. */
const loadBundle = async (): Promise<Bundle | null> => {
  try {
    const page = await readFile(`${folder}index.html`, "utf8")
    const names = await readdir(`${folder}assets`)
    const files = names.map(async (name): Promise<[string, CodedBytes]> => {
      const type = types[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream"
      return [name, new CodedBytes(await readFile(`${folder}assets/${name}`), type)]
    })
    return { page, files: new Map(await Promise.all(files)) }
  } catch {
    return null
  }
}

/**
 * Nothing runs but the bundle: its first script carries the answer's nonce and loads the others. Nothing is fetched from another
 * origin, also not an image in a body that the page shows.
 */
const policyWith = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'self'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'"
  ].join("; ")

const notBuilt = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Tidegate</title>
<p>The dashboard has not been built. Start the gateway with <code>npm start</code>, or run <code>node apps/dashboard/build.mjs</code> and reload.</p>
<p><a href="../docs">The API, to read and to try</a></p></html>`

/**
 * `GET /dashboard/`, the dashboard's page for each of its paths; `/dashboard/assets/`, its files; and `POST` and `DELETE
 * /dashboard/session`, which begin and end its session (a cookie; `ProviderSignIn` begins one without a key). The page itself contains nothing about an installation: what it
 * shows it reads from the API with the caller's credential.
 */
export const layer: Layer.Layer<never, never, Credentials | HttpRouter.HttpRouter | Ingress> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const [bundle, readAgain] = yield* Effect.cachedInvalidateWithTTL(Effect.promise(loadBundle), Duration.infinity)
    const { callerOf } = yield* Credentials
    const { publicUrl } = yield* Ingress
    const key = yield* BrowserSessionKey

    yield* router.add("GET", "/dashboard/*", (request) =>
      Effect.gen(function* () {
        const path = request.url.split("?", 1)[0] ?? ""
        const [, rest] = /\/dashboard(?:\/(.*))?$/.exec(path) ?? []
        if (rest === undefined) return HttpServerResponse.redirect("dashboard/")
        const built = yield* bundle
        if (built === null) yield* readAgain
        const asset = /^assets\/([\w.-]+)$/.exec(rest)?.[1]
        if (asset !== undefined) {
          const file = built?.files.get(asset)
          if (file === undefined) return yield* Effect.die(fail("ROUTE_NOT_FOUND", "the dashboard has no such file"))
          return yield* Effect.promise(() => file.answer(request.headers["accept-encoding"] ?? ""))
        }
        if (built === null) return HttpServerResponse.setStatus(HttpServerResponse.html(notBuilt), 503)
        const nonce = randomBytes(16).toString("base64")
        const base = "../".repeat(rest.split("/").length - 1) || "./"
        const page = built.page.replaceAll("{{nonce}}", nonce).replaceAll("{{base}}", base)
        return HttpServerResponse.html(page).pipe(
          HttpServerResponse.setHeader("content-security-policy", policyWith(nonce))
        )
      })
    )

    yield* router.add("POST", "/dashboard/session", (request) =>
      Effect.gen(function* () {
        yield* ofOwnPage(request)
        const { credential } = yield* readJsonObject(request)
        if (typeof credential !== "string" || !/^\S{1,2048}$/.test(credential)) {
          return yield* fail("UNAUTHENTICATED", "send a team's API key or a session's token as `credential`")
        }
        yield* callerOf(credential)
        const cookie = begun(key, credential, publicUrl, yield* Clock.currentTimeMillis)
        return HttpServerResponse.setHeader(HttpServerResponse.jsonUnsafe({ ok: true }), "set-cookie", cookie)
      }).pipe(Effect.scoped, Effect.orDie)
    )

    yield* router.add("DELETE", "/dashboard/session", (request) =>
      Effect.as(
        ofOwnPage(request),
        HttpServerResponse.setHeader(HttpServerResponse.jsonUnsafe({ ok: true }), "set-cookie", ended(publicUrl))
      )
    )
  })
)
