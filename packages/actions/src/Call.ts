import type { Connector, Answer, OutboundRequest } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import type { ExactNumber } from "@tidegate/json/ExactNumber"
import type { Message } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import type { OutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import type { StepError } from "@tidegate/workflows/StepKind"
import type { Result } from "effect"

/**
 * The call that an action makes, as data. An action is pure: the step's executor makes the call. It contains credentials, so it is neither stored
 * nor logged.
 */
export type Call = HttpCall | AccountCall | SendCall | StoreCall | GatewayCall

/** An HTTP request, and how its answer is read. */
export interface HttpCall {
  readonly kind: "http"
  readonly request: OutboundRequest
  /** The maximum of bytes to read from the answer. */
  readonly captureBytes: number
  /** Texts to mask in the answer. */
  readonly secrets: ReadonlyArray<string>
  /** Called with the target's answer, whatever its status. */
  readonly output: (answer: Answer) => Result.Result<Json, StepError>
}

/**
 * A request to the API of a provider, with the credentials of one of the team's accounts there. It contains none of them: they are
 * added when it is sent, and only for the account's own API.
 */
export interface AccountCall {
  readonly kind: "account"
  readonly provider_key: string
  readonly account_id: string
  readonly request: {
    readonly method: "GET" | "POST"
    /** Behind the base URL of the account's API, with its query. */
    readonly path: string
    /** Null: there is none. */
    readonly body: Json
  }
  readonly output: HttpCall["output"]
}

/** A message, sent as a destination of this type sends it, with the settings of this call. */
export interface SendCall {
  readonly kind: "send"
  readonly connector: Connector
  /** The complete settings, as `connector.open` requires them. */
  readonly settings: Config
  readonly auth: OutboundAuth
  readonly message: Message
  readonly secrets: ReadonlyArray<string>
  /** The output for an answer that the sender's `judge` has accepted. */
  readonly output: (answer: Answer) => Json
}

/** Reads or changes the team's values by key. Each operation is listed with its output. */
export interface StoreCall {
  readonly kind: "store"
  readonly operation: StoreOperation
}

export type StoreOperation =
  /** `{found, value}`; `value` is null if there is none. */
  | { readonly name: "get"; readonly key: string }
  /** `{key, value}`. */
  | { readonly name: "set"; readonly key: string; readonly value: Json }
  /** `{key, value}`: the sum. If the stored value is not a number, the step fails with INPUT_INVALID. Done once for each idempotency key. */
  | { readonly name: "increment"; readonly key: string; readonly by: number | ExactNumber }
  /** `{deleted}`: whether there was a value. */
  | { readonly name: "delete"; readonly key: string }

/** An operation of the gateway itself, for the team. */
export interface GatewayCall {
  readonly kind: "gateway"
  readonly operation: GatewayOperation
}

export type GatewayOperation =
  /** A request to one of the team's sources, handled as if it had come through ingress. `{request_id}`. */
  | { readonly name: "publish"; readonly source_id: string; readonly message: Message }
  /** `{found, request}`. */
  | { readonly name: "lookup_request"; readonly request_id: string }
  /** `{request_id}`: of the replay. */
  | { readonly name: "replay_request"; readonly request_id: string }
