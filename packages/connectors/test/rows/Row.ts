import type { Schema } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"

/** What a target answers. */
export interface Answered {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer that is none of success, and what a type makes of it. */
export interface Failing extends Answered {
  readonly code: AttemptErrorCode
  /** Whether the next attempt would fail likewise. */
  readonly final: boolean
  /** Seconds, where the body says them. */
  readonly retryAfter?: number
}

/** Each type tells these apart, or says by an empty list that what it talks to has nothing of the kind. */
export interface Failures {
  /** The destination's credentials are not taken. */
  readonly credentials: ReadonlyArray<Failing>
  /** It is more than the target takes at the moment. */
  readonly tooMuch: ReadonlyArray<Failing>
  /** What is sent, or where it is sent to, is refused. */
  readonly refused: ReadonlyArray<Failing>
  /** The target has trouble of its own. */
  readonly trouble: ReadonlyArray<Failing>
}

/** How a destination is written whose calls all come to one server. */
export interface Written {
  readonly config: Config
  /** With `auth`, where the first of the type's ways to authenticate cannot be tested with a mock server. */
  readonly auth_type?: string
  readonly auth?: Schema.JsonObject
}

/**
 * What the suites have to know of a type of destinations beside its row in the table of connectors. A type without one fails
 * them, and so does a setting that holds an address and stands in neither of the two lists.
 */
export interface ConformanceRow {
  readonly type: string
  /** With a server of HTTP at this origin in the place of whatever it talks to; null: it talks no HTTP, or to nobody. */
  readonly mock: ((origin: string) => Written) | null
  readonly accepted: Answered
  /** Null: no answer of HTTP is judged, and the type's own suite has its failures. */
  readonly failures: Failures | null
  /**
   * By setting (`auth.token_url` is one of the auth), the `config` that leads to such an address: the guard's corpus is tried
   * on each. `host`: it takes no URL but the host of one.
   */
  readonly addresses: Readonly<Record<string, (address: { readonly url: string; readonly host: string }) => Written>>
  /** Settings that read like an address and are none that anybody connects to, with what they are. */
  readonly notReached?: Readonly<Record<string, string>>
  /** By setting, what it has no effect without. */
  readonly beside?: Readonly<Record<string, Config>>
  /** What stands in `mock` and may be seen nowhere, beside `auth`. */
  readonly secrets?: ReadonlyArray<string>
  /** The real service, or a mock of it that was proved by the provider's own client. For the documentation. */
  readonly triedWith: string
}
