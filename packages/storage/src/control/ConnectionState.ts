import { Result } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { ConnectionFields } from "@tidegate/resources/Connection"
import type { Switch } from "@tidegate/resources/Resource"

/** The columns of a connection's row that a command can change. */
export interface ConnectionState extends ConnectionFields {
  /** "source": disabled together with its source, and enabled again with it. */
  readonly disabled_by: "source" | null
  /** When it was last unpaused. */
  readonly resumed_at: Date | null
  /** Events created up to this time that are still pending are CANCELLED. */
  readonly cancel_before: Date | null
}

/**
 *              disable                  pause
 *     disabled ◄─────── enabled, open ─────────► enabled, paused
 *        ▲ │  enable ──►    ▲                        │   │
 *        │ └────────────────┘ ◄───────── unpause ────┘   │
 *        └─────────────────────── disable ───────────────┘
 *
 * A transition that changes nothing returns the state it was given. Enabling cancels too: events that were pending before do
 * not come back.
 */
export type Transition = <S extends ConnectionState>(state: S, at: Date) => Result.Result<S, GatewayError>

const same = (left: Date | null, right: Date | null): boolean => left?.getTime() === right?.getTime()

/** Disables the connection itself, so that enabling its source does not enable it. */
const disabledAt = <S extends ConnectionState>(state: S, since: Date, at: Date): S =>
  state.disabled_at === null
    ? { ...state, disabled_at: since, disabled_by: null, paused_at: null, cancel_before: at }
    : same(state.disabled_at, since) && state.disabled_by === null
      ? state
      : { ...state, disabled_at: since, disabled_by: null }

const pausedAt = <S extends ConnectionState>(state: S, since: Date): Result.Result<S, GatewayError> => {
  if (state.disabled_at !== null) {
    return Result.fail(fail("CONNECTION_DISABLED", "a disabled connection cannot be paused; enable it first"))
  }
  return Result.succeed(same(state.paused_at, since) ? state : { ...state, paused_at: since })
}

const disable: Transition = (state, at) => Result.succeed(disabledAt(state, state.disabled_at ?? at, at))

const enable: Transition = (state, at) =>
  Result.succeed(
    state.disabled_at === null ? state : { ...state, disabled_at: null, disabled_by: null, cancel_before: at }
  )

const pause: Transition = (state, at) => pausedAt(state, state.paused_at ?? at)

const unpause: Transition = (state, at) =>
  Result.succeed(state.paused_at === null ? state : { ...state, paused_at: null, resumed_at: at })

/** What each switch does. */
export const transitions: Readonly<Record<Switch, Transition>> = { disable, enable, pause, unpause }

/** The state after a caller has written `fields`. The two timestamps mean the transitions that they stand for. */
export const write =
  (fields: ConnectionFields): Transition =>
  (state, at) => {
    const { description, destination_id, disabled_at, name, ordering, paused_at, rules, source_id } = fields
    const moved = source_id !== state.source_id
    // It was disabled by a source that it has left: nothing would enable it again.
    const disabled_by = moved ? null : state.disabled_by
    const written = { ...state, name, description, source_id, destination_id, rules, ordering, disabled_by }
    const switched = same(disabled_at, state.disabled_at)
      ? Result.succeed(written)
      : disabled_at === null
        ? enable(written, at)
        : Result.succeed(disabledAt(written, disabled_at, at))
    if (same(paused_at, state.paused_at)) return switched
    return Result.flatMap(switched, (next) => (paused_at === null ? unpause(next, at) : pausedAt(next, paused_at)))
  }
