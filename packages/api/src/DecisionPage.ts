import { Effect, type Layer, Stream } from "effect"
import type { Sharding } from "effect/cluster"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { StepLinks } from "@tidegate/entities/Workflow/StepLinks"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { fail, type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { decisionPath } from "@tidegate/model/Ingress"
import { GatheredBytes } from "@tidegate/runtime/GatheredBytes"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { escaped, page } from "./ConsentPage.ts"
import { askOwner } from "./handlers/Calls.ts"

/**
 * The page behind a link for a decision. The link is the credential: its token names one step of one run. Chat programs fetch links to
 * show previews, so opening the page decides nothing; only its form does.
 */

/** Characters of what a person may write. A longer text is refused. */
const longest = { name: 100, comment: 2_000 }
/** Bytes of a form: a text may be written with nine bytes for each character. */
const largestForm = 32 * 1024

/** Decisions that one process stores at once, and those of one team that may wait for that. */
const atOnce = { permits: 8, maxWaiting: 32 }

const words = {
  approve: { title: "Approve?", button: "Yes, approve", done: "You have approved the step" },
  reject: { title: "Reject?", button: "Yes, reject", done: "You have rejected the step" }
} as const

type Decision = keyof typeof words

const about = (step: string, run: string): string =>
  `<strong><bdi>${escaped(step)}</bdi></strong> of the run <code>${escaped(run)}</code>`

const notDone = (status: number, message: string): HttpServerResponse.HttpServerResponse =>
  page(status, "Not done", `<p>${escaped(message)}</p>`)

const unknown = notDone(404, "There is nothing to decide at this address. Check that the link is complete.")

/** What a failure means for a person. */
const failurePage = (error: GatewayError): HttpServerResponse.HttpServerResponse => {
  switch (error.code) {
    case "STEP_NOT_WAITING":
      return (error.data as { readonly step_status?: string } | undefined)?.step_status === "pending"
        ? notDone(409, "The run has not come to this step yet. Try again in a moment.")
        : notDone(410, "This has been decided already, or the time for it is over. Your decision was not stored.")
    case "WORKFLOW_NOT_EXECUTABLE":
      return notDone(410, "The run cannot continue any more. Your decision was not stored.")
    case "NOT_FOUND":
      return notDone(404, "The run does not exist any more.")
    case "RUN_ACTIVE":
    case "QUEUE_UNAVAILABLE":
      return notDone(503, "The decision could not be stored now. Go back and try again.")
    default:
      return notDone(statusOf[error.code], error.message)
  }
}

const readForm = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const gathered = new GatheredBytes(largestForm)
  const isWhole = yield* Stream.runFoldEffect(
    request.stream,
    () => true,
    (_, piece: Uint8Array) =>
      gathered.add(Buffer.from(piece)) ? Effect.succeed(true) : Effect.fail("too large" as const)
  ).pipe(Effect.orElseSucceed(() => false))
  if (!isWhole) return yield* fail("PAYLOAD_TOO_LARGE", "The form has too much text.")
  const form = new URLSearchParams(gathered.take().toString("utf8"))
  const textOf = (name: keyof typeof longest): string | null => form.get(name)?.replaceAll("\u0000", "").trim() || null
  const said = { name: textOf("name"), comment: textOf("comment") }
  for (const [member, most] of Object.entries(longest)) {
    if ((said[member as keyof typeof said]?.length ?? 0) > most) {
      return yield* fail("PAYLOAD_TOO_LARGE", `The ${member} has more than ${most} characters.`)
    }
  }
  return said
})

/** `GET` shows the form, and `POST` decides: at the paths of `approve_url` and `reject_url`. */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Sharding.Sharding> = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const links = yield* StepLinks
    const client = yield* WorkflowEntity.client
    const turns = permitsByKey(atOnce)

    /** The step that the token in the query names. The token is no part of the path: the router limits those to 100 characters. */
    const asked = Effect.gen(function* () {
      const { decision = "" } = (yield* HttpRouter.RouteContext).params
      const { url } = yield* HttpServerRequest.HttpServerRequest
      const token = new URLSearchParams(url.split("?", 2)[1]).get("token") ?? ""
      const place = Object.hasOwn(words, decision) ? links.read(token) : null
      return place === null ? null : { ...place, decision: decision as Decision }
    })

    const path = `${decisionPath}:decision` as const

    yield* router.add(
      "GET",
      path,
      Effect.map(asked, (place) => {
        if (place === null) return unknown
        const { button, title } = words[place.decision]
        return page(
          200,
          title,
          `<p>A workflow waits for a decision: the step ${about(place.step_id, place.run_id)}.</p>
<form method="post">
<p><label>Your name (optional)<br><input name="name" maxlength="${longest.name}" autocomplete="name"></label></p>
<p><label>Comment (optional)<br><textarea name="comment" maxlength="${longest.comment}" rows="3"></textarea></label></p>
<button>${button}</button></form>`
        )
      })
    )

    yield* router.add(
      "POST",
      path,
      Effect.gen(function* () {
        const place = yield* asked
        if (place === null) return unknown
        const { decision, run_id, step_id, team_id, workflow_id } = place
        const { comment, name } = yield* readForm
        const approves = decision === "approve"
        const deciding = client(workflow_id).Decide({
          team_id,
          run_id,
          step_id,
          approves,
          comment,
          user_id: null,
          link: { name }
        })
        const turn = turns.within(team_id)
        yield* turn(askOwner(deciding), fail("QUEUE_UNAVAILABLE", "too many decisions are being stored"))
        return page(
          200,
          "Done",
          `<p>${words[decision].done} ${about(step_id, run_id)}.</p>\n<p>You can close this page.</p>`
        )
      }).pipe(Effect.catchTag("GatewayError", (error) => Effect.succeed(failurePage(error))))
    )
  })
)
