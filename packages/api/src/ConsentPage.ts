import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Context } from "effect"
import { HttpServerResponse } from "effect/http"

/**
 * The page for a person whom a provider has redirected back. It names the team, and the destination or the provider account of the
 * consent. The link that they followed may come from anyone in that team, so nothing happens until they confirm here.
 */

/** What a consent is for. */
export interface Asking {
  readonly what: "destination" | "account"
  readonly id: string
  readonly name: string
  /** The destination's type, or the provider. */
  readonly type: string
  readonly team_id: string
  readonly team_name: string
}

const style = `body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}
button{font:inherit;padding:.5rem 1rem}code{overflow-wrap:anywhere}`

const headers = {
  "content-security-policy": [
    "default-src 'none'",
    `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'"
  ].join("; "),
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  // Its URL contains the state and the code.
  "referrer-policy": "no-referrer",
  "cache-control": "no-store"
}

export const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

/** A name may be in any script: it must not change the direction of the text beside it. */
const named = (name: string, id: string): string =>
  `<strong><bdi>${escaped(name)}</bdi></strong> (<code>${escaped(id)}</code>)`

/** A page without scripts, whose forms post only to this gateway, and which no other page may embed. */
export const page = (status: number, title: string, body: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.html(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${style}</style>
<h1>${title}</h1>
${body}
</html>
`).pipe(HttpServerResponse.setStatus(status), HttpServerResponse.setHeaders(headers))

/** Signs what the page sends back. Processes with the same key accept each other's pages; the default is a key of the process. */
export const ConsentKey = Context.Reference<string>("@tidegate/api/ConsentKey", {
  defaultValue: () => randomBytes(32).toString("hex")
})

/** The parameters with which the person came back from the provider. */
export interface Brought {
  readonly state: string
  readonly code: string
}

/** How long a page is valid (ms): as long as the consent. */
const openMs = 600_000

const signatureOf = (key: string, { code, state }: Brought, until: number): string =>
  createHmac("sha256", key).update(`consent ${until} ${state} ${code}`).digest("base64url")

/**
 * The value that a confirmation sends back. Only a person who was shown the page for this state and this code within the last
 * minutes has it.
 */
export const confirmationOf = (key: string, brought: Brought, now: number): string =>
  `${now + openMs}.${signatureOf(key, brought, now + openMs)}`

export const isConfirmation = (key: string, brought: Brought, said: string | undefined, now: number): boolean => {
  const [, until = "", signed = ""] = /^(\d{13})\.([\w-]{43})$/.exec(said ?? "") ?? []
  if (signed === "" || Number(until) < now) return false
  return timingSafeEqual(Buffer.from(signed), Buffer.from(signatureOf(key, brought, Number(until))))
}

/**
 * Asks for confirmation. The form posts to the page's own address, so it works with any public URL. It posts only after a click:
 * no URL that a browser fetches confirms anything.
 */
export const askingPage = (asking: Asking, { code, state }: Brought, confirmed: string) =>
  page(
    200,
    "Do you consent?",
    `${wordsOf[asking.what].asks(asking)}
<p>If you do not know it, or did not expect this, close this page. Nothing has been done with your consent yet.</p>
<form method="post" action="?${escaped(new URLSearchParams({ state, code, confirmed }).toString())}">
<button>${wordsOf[asking.what].agree}</button></form>`
  )

interface Words {
  readonly asks: (asking: Asking) => string
  readonly agree: string
  readonly done: (asking: Asking) => string
}

const wordsOf: Readonly<Record<Asking["what"], Words>> = {
  destination: {
    asks: ({ id, name, team_id, team_name, type }) =>
      `<p>The destination ${named(name, id)}, of type ${escaped(type)}, asks to deliver with your consent.
It belongs to the team ${named(team_name, team_id)}: who may edit it decides what is delivered.</p>`,
    agree: "Yes, deliver with my consent",
    done: ({ id, name, team_id, team_name }) =>
      `The destination ${named(name, id)} of the team ${named(team_name, team_id)} delivers with your consent from now on.`
  },
  account: {
    asks: ({ id, name, team_id, team_name, type }) =>
      `<p>The team ${named(team_name, team_id)} asks to use your account at ${escaped(type)}, as its provider account ${named(name, id)}.
Who may edit the team's sources and actions decides what is read and done with your account.</p>`,
    agree: "Yes, connect my account",
    done: ({ id, name, team_id, team_name }) =>
      `Your account is connected to the team ${named(team_name, team_id)}, as its provider account ${named(name, id)}.`
  }
}

export const endedPage = (asking: Asking, renewable: boolean) =>
  page(
    200,
    "Done",
    `<p>${wordsOf[asking.what].done(asking)}</p>
${renewable ? "" : "<p>The provider has given no refresh token: somebody has to consent again when the first token is over.</p>"}
<p>You can close this page. You take your consent back at the provider.</p>`
  )

export const failedPage = (status: number, message: string) => page(status, "Not done", `<p>${escaped(message)}</p>`)
