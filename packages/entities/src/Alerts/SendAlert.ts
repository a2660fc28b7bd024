import { Effect } from "effect"
import { chatBody, messageText } from "@tidegate/channels/alerts/AlertText"
import { Egress } from "@tidegate/egress/Egress"
import { askedWait } from "@tidegate/rules/Retry"
import type { ClaimedMessage, SendResult } from "@tidegate/storage/channels/AlertDelivery"
import { MailServer } from "./MailServer.ts"

const chatTimeoutMs = 10_000
const longestMail = 20_000

const failed = (
  error_code: string,
  of: Partial<Extract<SendResult, { readonly kind: "failed" }>> = {}
): SendResult => ({ kind: "failed", error_code, response_status: null, isPermanent: true, retryAfterMs: null, ...of })

/** Sends a message about alerts, and says how that ended. */
export const sendAlert = (message: ClaimedMessage): Effect.Effect<SendResult, never, Egress | MailServer> =>
  message.transport === "chat" ? toChat(message) : byMail(message)

/** Failures before a connection that the same URL has again. */
const hopeless: ReadonlySet<string> = new Set(["INVALID_URL", "MISSING_URL", "TARGET_NOT_ALLOWED", "INVALID_CHARACTER"])

const toChat = Effect.fnUntraced(function* ({
  alerts,
  to: [written]
}: ClaimedMessage): Effect.fn.Return<SendResult, never, Egress> {
  const url = URL.parse(written ?? "")
  if (url === null) return failed("CHAT_NOT_CONFIGURED")
  const egress = yield* Egress
  const { errorCode, headers, status } = yield* Effect.promise((signal) =>
    egress.deliver({
      method: "POST",
      url: url.href,
      headers: ["content-type", "application/json"],
      body: chatBody(url, alerts),
      timeoutMs: chatTimeoutMs,
      captureBytes: 1_024,
      signal
    })
  )
  if (status === null) return failed(errorCode ?? "UNKNOWN", { isPermanent: hopeless.has(errorCode ?? "") })
  if (status >= 200 && status < 300) return { kind: "sent", response_status: status }
  if (status !== 429 && status < 500) return failed("CHAT_REFUSED", { response_status: status })
  const [after, date] = [headers["retry-after"], headers["date"]]
  return failed("CHAT_UNAVAILABLE", {
    response_status: status,
    isPermanent: false,
    retryAfterMs: typeof after === "string" ? askedWait(after, Date.parse(String(date))) : null
  })
})

const byMail = Effect.fnUntraced(function* ({
  alerts,
  message_id,
  references,
  team_id,
  to
}: ClaimedMessage): Effect.fn.Return<SendResult, never, MailServer> {
  const server = yield* MailServer
  if (server === null) return failed("SMTP_NOT_CONFIGURED")
  if (to.length === 0) return failed("NO_RECIPIENTS")
  const domain = server.from.slice(server.from.lastIndexOf("@") + 1)
  const { subject, text } = messageText(alerts, longestMail)
  return yield* Effect.match(
    server.send({
      to,
      subject: `[Tidegate] ${subject}`,
      text: `${text}\n`,
      messageId: `${message_id}@${domain}`,
      references: references.map((id) => `${id}@${domain}`),
      listId: `channel-alerts.${team_id.replaceAll("_", "-")}.${domain}`
    }),
    {
      onSuccess: (code): SendResult => ({ kind: "sent", response_status: code }),
      // A reply of 5xx is for good; one of 4xx, and none at all, is not.
      onFailure: ({ code }) =>
        code !== null && code >= 500
          ? failed("SMTP_REFUSED", { response_status: code })
          : failed("SMTP_UNAVAILABLE", { response_status: code, isPermanent: false })
    }
  )
})
