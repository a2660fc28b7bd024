import { parseJson } from "@tidegate/json/JsonText"
import { Effect, type Schema } from "effect"
import type {
  Adapter,
  CallbackMessage,
  Context,
  Item,
  Notification,
  ProviderError,
  Subscription,
  Target
} from "../Adapter.ts"
import { listOf, textOf } from "../Foreign.ts"
import { maxFatBytes } from "../Items.ts"
import { getJson, invalid, jsonOf, remove, sendJson } from "./Answers.ts"
import { isHmac, rejected, reply } from "./Replies.ts"

/**
 * Webhooks of a repository at GitHub, Gitea or Forgejo (https://docs.github.com/rest/repos/webhooks). Deliveries are signed with the
 * subscription's secret and contain what happened. A webhook has no end. It works from its creation on; the ping that follows needs
 * no answer of its own.
 */

export interface RepoEvents {
  readonly events: ReadonlyArray<string>
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  /** Where the webhooks of the repository are. */
  readonly hooksUrl: (context: Context) => string
  /** The item of a delivery. Null: the delivery does not belong to this trigger. */
  readonly item: (event: string, payload: unknown, inputs: Schema.JsonObject) => Item | null
}

/** Repositories have at most 20 webhooks for each event, so one page contains them. */
const findIds = (
  context: Context,
  hooksUrl: string,
  callback: string
): Effect.Effect<ReadonlyArray<string>, ProviderError> =>
  Effect.map(getJson(context, `${hooksUrl}?per_page=100&limit=100`, "listing the webhooks"), (hooks) =>
    listOf(hooks).flatMap((hook) => (textOf(hook, "config", "url") === callback ? (textOf(hook, "id") ?? []) : []))
  )

const received = (
  { item }: RepoEvents,
  { secret }: Subscription,
  inputs: Schema.JsonObject,
  { body, headers, method }: CallbackMessage
): Notification => {
  const [scheme, signature = ""] = (headers["x-hub-signature-256"] ?? "").split("=")
  // Fails closed: a doubtful delivery is refused, because accepting one could accept a forgery.
  if (method !== "POST" || scheme !== "sha256" || !isHmac(signature, "sha256", secret, body)) {
    return rejected(401, "the signature is missing or wrong")
  }
  const event = headers["x-github-event"] ?? headers["x-gitea-event"] ?? ""
  if (event === "ping") return { kind: "ping", reply: reply(200) }
  if (body.length > maxFatBytes) return { kind: "dirty", messageNumber: null, occurredAt: null, reply: reply(202) }
  const parsed = parseJson(body)
  if (parsed.kind !== "json") return rejected(400, "the delivery is no JSON")
  const found = item(event, parsed.value, inputs)
  return found === null
    ? { kind: "ping", reply: reply(202) }
    : { kind: "items", items: [found], occurredAt: found.occurredAt, reply: reply(202) }
}

const created = { externalResourceId: null, expiresAt: null, state: "active" } as const

export const repoWebhookAdapter = (row: RepoEvents): Adapter => {
  const { events, hooksUrl, targets } = row
  return {
    key: "repo_webhook",
    targets,
    provision: (context, { secret }, callback) =>
      Effect.gen(function* () {
        const what = "creating the webhook"
        // Gitea creates a second webhook if the creation is repeated. The first one may exist already, if its answer was lost.
        const [known] = yield* findIds(context, hooksUrl(context), callback)
        if (known !== undefined) return { ...created, externalChannelId: known }
        const config = { url: callback, content_type: "json", secret, insecure_ssl: "0" }
        const answer = yield* sendJson(
          context,
          "POST",
          hooksUrl(context),
          // Gitea requires its own type in the member in which GitHub requires the name.
          { name: "web", type: "gitea", active: true, events, config },
          what
        )
        const id = textOf(yield* jsonOf(answer, what), "id")
        if (id === null || id.length > 256) return yield* invalid(`${what}: the answer has no id`, answer.status)
        return { ...created, externalChannelId: id }
      }),
    renew: null,
    stop: (context, { externalChannelId }, callback) =>
      Effect.gen(function* () {
        const url = hooksUrl(context)
        const ids = externalChannelId === null ? yield* findIds(context, url, callback) : [externalChannelId]
        for (const id of ids) yield* remove(context, `${url}/${encodeURIComponent(id)}`, "deleting the webhook")
      }),
    receive: (subscription, inputs, message) => received(row, subscription, inputs, message)
  }
}
