import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Context } from "effect"
import { HttpServerResponse } from "effect/http"
import type { ConsentFor } from "@tidegate/storage/delivery/DestinationTokens"

/**
 * What somebody sees whom a provider has led back: for whom they consent. The link that they followed may be anybody's who may edit a
 * destination of that team, and so nothing is done with what they bring before they have said yes here.
 */

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
  // Its URL has the state and the code.
  "referrer-policy": "no-referrer",
  "cache-control": "no-store"
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)

/** A name may be written in any script: it does not turn around what stands beside it. */
const named = (name: string, id: string): string =>
  `<strong><bdi>${escaped(name)}</bdi></strong> (<code>${escaped(id)}</code>)`

const page = (status: number, title: string, body: string): HttpServerResponse.HttpServerResponse =>
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

/** Signs what the page sends back. Processes that share it take each other's pages; the default is one process's own. */
export const ConsentKey = Context.Reference<string>("@tidegate/api/ConsentKey", {
  defaultValue: () => randomBytes(32).toString("hex")
})

/** What somebody has brought back from the provider. */
export interface Brought {
  readonly state: string
  readonly code: string
}

/** How long a page may be open (ms): as long as the consent may take. */
const openMs = 600_000

const signatureOf = (key: string, { code, state }: Brought, until: number): string =>
  createHmac("sha256", key).update(`consent ${until} ${state} ${code}`).digest("base64url")

/** Whoever says yes sends this back. Nobody has it who was not shown the page, for this state and this code, within the last minutes. */
export const confirmationOf = (key: string, brought: Brought, now: number): string =>
  `${now + openMs}.${signatureOf(key, brought, now + openMs)}`

export const isConfirmation = (key: string, brought: Brought, said: string | undefined, now: number): boolean => {
  const [, until = "", signed = ""] = /^(\d{13})\.([\w-]{43})$/.exec(said ?? "") ?? []
  if (signed === "" || Number(until) < now) return false
  return timingSafeEqual(Buffer.from(signed), Buffer.from(signatureOf(key, brought, Number(until))))
}

/** Asks them. It is a form of its own address, whatever that is called from outside, and is sent by a click alone: no address that a browser fetches says yes. */
export const askingPage = (
  { id, name, team_id, team_name, type }: ConsentFor,
  { code, state }: Brought,
  confirmed: string
) =>
  page(
    200,
    "Do you consent?",
    `<p>The destination ${named(name, id)}, of type ${escaped(type)}, asks to deliver with your consent.
It belongs to the team ${named(team_name, team_id)}: who may edit it decides what is delivered.</p>
<p>If you do not know it, or did not expect this, close this page. Nothing has been done with your consent yet.</p>
<form method="post" action="?${escaped(new URLSearchParams({ state, code, confirmed }).toString())}">
<button>Yes, deliver with my consent</button></form>`
  )

export const endedPage = ({ id, name, team_id, team_name }: ConsentFor, renewable: boolean) =>
  page(
    200,
    "Done",
    `<p>The destination ${named(name, id)} of the team ${named(team_name, team_id)} delivers with your consent from now on.</p>
${renewable ? "" : "<p>The provider has given no refresh token: somebody has to consent again when the first token is over.</p>"}
<p>You can close this page. You take your consent back at the provider.</p>`
  )

export const failedPage = (status: number, message: string) => page(status, "Not done", `<p>${escaped(message)}</p>`)
