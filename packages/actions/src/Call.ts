import type { Connector, Answer, OutboundRequest } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import type { ExactNumber } from "@tidegate/json/ExactNumber"
import type { Message } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import type { OutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import type { StepError } from "@tidegate/workflows/StepKind"
import type { Result } from "effect"

/**
 * What an action has the gateway do, told as data: an action is pure, and whoever runs the step carries its call out. Credentials stand in it, so
 * it is neither stored nor logged.
 */
export type Call = HttpCall | SendCall | StoreCall | GatewayCall

/** A request, and what its answer means. */
export interface HttpCall {
  readonly kind: "http"
  readonly request: OutboundRequest
  /** How many bytes of the answer are wanted. */
  readonly captureBytes: number
  /** What must not be shown of what comes back. */
  readonly secrets: ReadonlyArray<string>
  /** Asked of what a target has answered, whatever its status. */
  readonly output: (answer: Answer) => Result.Result<Json, StepError>
}

/** A message sent as a destination of a type would send it, with settings of this one call. */
export interface SendCall {
  readonly kind: "send"
  readonly connector: Connector
  /** Complete: `connector.open` takes them. */
  readonly settings: Config
  readonly auth: OutboundAuth
  readonly message: Message
  readonly secrets: ReadonlyArray<string>
  /** Of an answer that the sender's `judge` has found successful. */
  readonly output: (answer: Answer) => Json
}

/** A look at, or a change of, the team's values by key. What each answers is the output of the step. */
export interface StoreCall {
  readonly kind: "store"
  readonly operation: StoreOperation
}

export type StoreOperation =
  /** `{found, value}`; value is null where there is none. */
  | { readonly name: "get"; readonly key: string }
  /** `{key, value}`. */
  | { readonly name: "set"; readonly key: string; readonly value: Json }
  /** `{key, value}`: the sum. Of a value that is no number the step fails with INPUT_INVALID. Once for each idempotency key. */
  | { readonly name: "increment"; readonly key: string; readonly by: number | ExactNumber }
  /** `{deleted}`: whether there was one. */
  | { readonly name: "delete"; readonly key: string }

/** Something that the gateway itself does for the team. */
export interface GatewayCall {
  readonly kind: "gateway"
  readonly operation: GatewayOperation
}

export type GatewayOperation =
  /** A request to one of the team's sources, as if it had come through its door. `{request_id}`. */
  | { readonly name: "publish"; readonly source_id: string; readonly message: Message }
  /** `{found, request}`. */
  | { readonly name: "lookup_request"; readonly request_id: string }
  /** `{request_id}`: of the replay. */
  | { readonly name: "replay_request"; readonly request_id: string }
