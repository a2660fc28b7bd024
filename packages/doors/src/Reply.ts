import type { Json } from "@tidegate/model/Rule"
import type { CompiledCustomResponse } from "@tidegate/rules/CustomResponse"
import type { RequestInput } from "@tidegate/rules/RequestInput"

/** What a sender is answered. */
export interface Reply {
  readonly status: number
  readonly contentType: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How a source answers what it accepts. */
export interface ReplySettings {
  /** The source's own answer, which goes before the one that its type has. */
  readonly customResponse: CompiledCustomResponse | null
  readonly acknowledgement: Acknowledgement
}

/** What a sender of some type takes for "received". */
export type Acknowledgement =
  | { readonly kind: "queued" }
  /** A chat interaction's first answer; `ephemeral`: only the user who began it sees what follows. */
  | { readonly kind: "interaction"; readonly ephemeral: boolean }
  /** 204, without a body. */
  | { readonly kind: "empty" }

export const acknowledgementOf = (type: string, ephemeral: boolean): Acknowledgement =>
  type === "DISCORD" ? { kind: "interaction", ephemeral } : { kind: type === "DISCORD_EVENTS" ? "empty" : "queued" }

const json = "application/json; charset=utf-8"
const none = {}

/** The answer to a request that was stored and is routed: the source's own, else what its type takes. */
export const acceptedReply = (settings: ReplySettings, requestId: string, input: () => RequestInput): Reply => {
  if (settings.customResponse !== null) {
    const about = input()
    const custom = settings.customResponse.respond({
      requestId,
      method: about.method,
      path: about.path,
      headers: about.headers,
      get query() {
        return about.query
      },
      body: about.body
    })
    if (custom !== null) return custom
  }
  const { acknowledgement } = settings
  if (acknowledgement.kind === "empty") return { status: 204, contentType: null, headers: none, body: "" }
  const body =
    acknowledgement.kind === "interaction"
      ? JSON.stringify(interactionReply(input().body(), acknowledgement.ephemeral))
      : `{"ok":true,"queued":true,"transport":"queue","request_id":"${requestId}"}`
  return { status: 200, contentType: json, headers: none, body }
}

const autocomplete = 4

/**
 * The answer that an interaction has to have within three seconds: "deferred" (5), to be followed up by whoever gets the
 * event; an autocomplete (4) cannot be deferred and gets no choices (8).
 */
const interactionReply = (interaction: Json, ephemeral: boolean): Json =>
  typeof interaction === "object" &&
  interaction !== null &&
  "type" in interaction &&
  interaction["type"] === autocomplete
    ? { type: 8, data: { choices: [] } }
    : ephemeral
      ? { type: 5, data: { flags: 64 } }
      : { type: 5 }
