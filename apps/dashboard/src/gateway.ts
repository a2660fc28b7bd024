import { Client, type components, streamRequests, TidegateError } from "@tidegate/client/source"
import { exactJson } from "./json.ts"

/** The rows of the API, by their names in its document. */
export type Row<Name extends keyof components["schemas"]> = components["schemas"][Name]

/** The folder of the dashboard's page, and the gateway's own, which is above it. */
export const folder = new URL(document.baseURI)
const origin = new URL("..", folder).href.replace(/\/$/, "")

/** The page of a share, for people who are not signed in, and the token in such a page's path. */
export const pageOfShare = (token: string): string => new URL(`shared/${token}`, folder).href
export const tokenOfShare = (): string | null => {
  const place = `${folder.pathname}shared/`
  return location.pathname.startsWith(place) ? location.pathname.slice(place.length) : null
}

/** The gateway accepts the session's cookie only with this header, which a page of another site cannot send. */
const own = { "x-tidegate-dashboard": "1" }

const send = (request: Request): Promise<Response> => {
  for (const [name, value] of Object.entries(own)) request.headers.set(name, value)
  return fetch(request)
}

/**
 * Calls the gateway as the signed-in caller, for a team: by default the caller's own. Numbers in received data and in settings keep all their digits:
 * see `json.ts`.
 */
export const gateway = (team?: string): Client =>
  new Client({
    baseUrl: origin,
    fetch: send,
    retries: 1,
    timeoutMs: 20_000,
    json: exactJson,
    ...(team === undefined ? {} : { team })
  })

/** Passes the requests of a public bin on as they arrive, until `signal` ends it. */
export const streamBin = (
  bin: { readonly id: string; readonly token: string },
  handlers: Pick<Parameters<typeof streamRequests>[0], "onChange" | "onRequest" | "onSkipped" | "signal">
): Promise<void> => streamRequests({ baseUrl: origin, key: bin.token, sourceId: bin.id, json: exactJson, ...handlers })

/** The bytes of a path below `/v1`, as they are stored. */
export const bytesOf = async (path: string, team: string): Promise<Uint8Array<ArrayBuffer>> => {
  const response = await fetch(`${origin}/v1${path}`, { headers: { ...own, "x-team-id": team } })
  if (!response.ok)
    throw new TidegateError(response, (await response.json().catch(() => undefined)) as object | undefined)
  return new Uint8Array(await response.arrayBuffer())
}

/** The API's document: the forms are made of its schemas. */
export const apiDocument = async (): Promise<unknown> => (await fetch(`${origin}/openapi.json`)).json()

/** Calls the gateway below the dashboard's own folder. */
const callFolder = async (method: "GET" | "POST", path: string, body?: object): Promise<unknown> => {
  const response = await fetch(new URL(path, folder), {
    method,
    headers: { ...own, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const answer: unknown = await response.json().catch(() => undefined)
  if (!response.ok) throw new TidegateError(response, answer as object | undefined)
  return answer
}

/** Begins a session in this browser: the gateway answers with a cookie. */
export const beginSession = async (credential: string): Promise<void> => {
  await callFolder("POST", "session", { credential })
}

/** How people can sign in besides with a key: with the operator's identity provider, as the demo user. */
export const waysToSignIn = async () =>
  (await callFolder("GET", "session")) as { readonly identity_provider: boolean; readonly demo: boolean }

/** Leaves the dashboard for the identity provider, which sends the browser back to `answerOfProvider`. */
export const beginAtProvider = async (): Promise<void> => {
  const { url } = (await callFolder("POST", "sign-in/begin")) as { readonly url: string }
  location.assign(url)
}

/** The answer of the identity provider, from the URL to which it has sent the browser back. Null: there is none. */
export const answerOfProvider = (): string | null =>
  location.pathname === `${folder.pathname}signed-in` ? location.search.slice(1) : null

/** Begins a session with such an answer. */
export const endAtProvider = async (answer: string): Promise<void> => {
  await callFolder("POST", "sign-in/finish", { answer })
}

/** Begins a session of the demo user, if the operator allows it at this address. */
export const beginDemo = async (): Promise<void> => {
  const response = await fetch(`${origin}/v1/auth/demo/login`, { method: "POST", headers: own })
  const answer = (await response.json()) as { readonly token?: string }
  if (!response.ok || answer.token === undefined) throw new TidegateError(response, answer as object)
  await beginSession(answer.token)
}

/** Ends the session. A user's session ends at the API as well, so that nobody can go on with its token; an API key stays valid. */
export const endSession = async (isUser: boolean): Promise<void> => {
  if (isUser) await fetch(`${origin}/v1/auth/logout`, { method: "POST", headers: own })
  await fetch(new URL("session", folder), { method: "DELETE", headers: own })
}

/** A failure in words for the reader. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : "The gateway could not be reached."

/** Whether the caller may not read something. */
export const isRefused = (error: unknown): boolean => error instanceof TidegateError && error.status === 403

export const isSignedOut = (error: unknown): boolean => error instanceof TidegateError && error.status === 401
