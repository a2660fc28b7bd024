import { Effect, Result, type Scope } from "effect"
import type { SendCall } from "@tidegate/actions/Call"
import {
  type Answer,
  type AttemptFacts,
  Refusal,
  type Sender,
  type SessionServices
} from "@tidegate/connectors/Connector"
import type { Failure } from "@tidegate/connectors/Failure"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { isOfDomains, SenderDomains } from "@tidegate/connectors/SenderDomains"
import { Egress } from "@tidegate/egress/Egress"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { Echoes } from "@tidegate/redaction/Echoes"
import { carrying, compileOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import type { StepError } from "@tidegate/workflows/StepKind"
import { waitOf } from "../../holds/TargetHold.ts"
import { credentialOf } from "../../tokens/Credential.ts"
import { makeSharedTokens } from "../../tokens/SharedTokens.ts"
import type { NotObtained } from "../../tokens/TokenAnswers.ts"
import type { Call, Carry } from "./Call.ts"
import { makeCallHeaders } from "./CallHeaders.ts"
import { exchange, withoutEchoes } from "./Exchange.ts"
import { withAnswer } from "./RefusedAnswer.ts"

/** Bytes of a target's answer that are kept, as for a delivery. */
const maxAnswered = 64 * 1024

const asService: StepError = {
  code: "INPUT_INVALID",
  message: "from: no action sends e-mail from a domain of the service itself",
  final: true
}

/** The facts about a step's message, in the place of a delivery's event. */
const factsOf = ({ effect, key, now, run }: Call, { message }: SendCall): AttemptFacts => ({
  eventId: key,
  requestId: run.request_id,
  teamId: run.team_id,
  sourceId: run.source_id,
  connectionId: "",
  destinationId: "",
  webhookId: key,
  attemptNumber: effect.start.attempt,
  trigger: "INITIAL",
  willRetryAfter: null,
  sourceName: run.source_name,
  connectionName: String(effect.context.workflow["name"]),
  destinationName: "",
  verified: false,
  originalIp: null,
  createdAt: now,
  timestampSeconds: Math.floor(now / 1_000),
  shown: message,
  orderingKey: null,
  isStep: true
})

/**
 * Sends a message with the code of a destination type, without a destination. The sender is opened for this one call and closed
 * after it.
 */
export const makeSendCall = Effect.gen(function* () {
  const egress = yield* Egress
  const origins = yield* ApiOrigins
  const own = yield* SenderDomains
  const withCallHeaders = yield* makeCallHeaders
  const services = yield* Effect.context<SessionServices>()
  const tokens = yield* makeSharedTokens

  const answerOf = Effect.fnUntraced(function* (
    sender: Sender,
    sent: SendCall,
    call: Call,
    echoes: Echoes | null
  ): Effect.fn.Return<Answer, StepError, Scope.Scope> {
    const { effect, heard, key, run } = call
    const facts = factsOf(call, sent)
    if (sender.kind === "session") {
      return yield* Effect.flatMap(sender.connect, (session) => session.send(sent.message, facts, () => true)).pipe(
        Effect.mapError((failure) => errorOf(failure, null)),
        Effect.provide(services)
      )
    }
    if (sender.kind !== "http")
      return yield* Effect.fail({ code: "ACTION_UNAVAILABLE", message: "nothing is called by it" })
    const request = sender.prepare(sent.message, facts)
    if (request instanceof Refusal) {
      return yield* Effect.fail({ code: request.code, message: request.message, final: true })
    }
    const { complete } = sender
    const { secret, ...prepared } =
      complete === undefined ? request : yield* Effect.promise(() => complete(request, facts))
    const headers = withCallHeaders(prepared.headers, effect, run, key)
    // A target may repeat what was signed for this call alone.
    const hidden = secret === undefined ? echoes : Echoes.with(echoes, secret)
    const bounds = { captureBytes: maxAnswered, echoes: hidden, timeoutMs: effect.step.timeoutMs }
    const answer = yield* exchange(egress, { ...prepared, headers }, bounds)
    const verdict = sender.judge(answer)
    yield* heard(answer, verdict)
    return verdict === "successful" ? answer : yield* Effect.flip(withAnswer(errorOf(verdict, answer), answer))
  })

  /** Opens a sender with this token and sends; null: it needs no token. */
  const sendWith = Effect.fnUntraced(function* (token: string | null, sent: SendCall, call: Call) {
    const compiled = compileOutboundAuth(sent.auth)
    const echoes = Echoes.of([...sent.secrets, ...(token === null ? [] : [token])])
    const auth = {
      headers: (token === null ? compiled : carrying(compiled, token)).headers,
      signing: null,
      settings: sent.auth.auth
    }
    const sender = sent.connector.open(sent.settings, auth, origins)
    const answer = yield* Effect.scoped(answerOf(sender, sent, call, echoes)).pipe(
      Effect.mapError((error): StepError => ({ ...error, message: echoes?.text(error.message) ?? error.message }))
    )
    yield* laterTurn
    return withoutEchoes(answer, echoes)
  })

  const carry: Carry<SendCall> = Effect.fnUntraced(function* (sent, call) {
    // Fails closed: the step's inputs choose content and recipient, so nobody may send in the service's own name, whoever wrote
    // the sender's address.
    if (isOfDomains(own, sent.settings["from"])) return yield* Effect.fail(asService)
    const { grant = null } = compileOutboundAuth(sent.auth)
    if (grant === null) return sent.output(yield* sendWith(null, sent, call))
    const { effect, run } = call
    const owner = { id: effect.step.step.resource_id ?? run.id, team_id: run.team_id }
    const credential = credentialOf(owner, grant, sent.connector.scope ?? null, origins)
    const { accepted, obtain, renewed } = yield* tokens(credential)
    // Fails closed: without a token nothing is sent.
    const { value: token } = yield* Effect.mapError(obtain(credential), withoutToken)
    const first = yield* Effect.result(sendWith(token, sent, call))
    if (Result.isSuccess(first) || (first.failure.status !== undefined && first.failure.status !== 401)) accepted()
    if (Result.isSuccess(first)) return sent.output(first.success)
    // It takes this token no more: once more, with another one.
    const another =
      first.failure.status === 401 ? yield* Effect.mapError(renewed(credential, token), withoutToken) : null
    return another === null
      ? yield* Effect.fail(first.failure)
      : sent.output(yield* sendWith(another.value, sent, call))
  })
  return carry
})

const withoutToken = ({ message, waitMs }: NotObtained): StepError => ({
  code: "OAUTH2_HANDSHAKE_FAILED",
  message,
  ...(waitMs === null ? {} : { retry_after_ms: waitMs })
})

const errorOf = (failure: Failure, answer: Answer | null): StepError => {
  const { code, final, message } = failure
  const wait = waitOf(failure, { status: null, headers: {}, ...answer, errorCode: null }, Date.now())
  return {
    code,
    message,
    ...(answer === null ? {} : { status: answer.status }),
    ...(typeof wait === "number" ? { retry_after_ms: wait } : {}),
    ...(final || wait === "cancel" ? { final: true } : {})
  }
}
