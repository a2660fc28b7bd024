import { Effect, type Schema } from "effect"
import type { Context, Item, Poller, ProviderError, Target } from "../Adapter.ts"
import { invalid } from "../adapters/Answers.ts"
import { memberOf } from "../Foreign.ts"
import { maxItems } from "../Items.ts"

/**
 * Polls lists of changes that have cursors of their own (sync tokens, page tokens, delta links): one list for each target. The cursor
 * has a state for each target. A target that fails fails the whole poll: nothing is lost, and the failure is seen.
 */

export interface Step {
  readonly items: ReadonlyArray<Item>
  readonly state: Schema.Json
  /** There is more to read now. */
  readonly more: boolean
  readonly reset?: true
}

export interface Walked {
  readonly key: string
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  /** Finds out where a target's changes begin now. It returns no items. */
  readonly start: (context: Context, target: string) => Effect.Effect<Step, ProviderError>
  /** Reads one page of changes. It asks for at most `pageSize` items. */
  readonly next: (context: Context, target: string, state: Schema.Json) => Effect.Effect<Step, ProviderError>
}

/** Items of a page at most. */
export const pageSize = 250

/** Requests of one poll at most; the next poll continues. */
const maxSteps = 100

const largestCursor = 65_536

export const walkPoller = ({ key, next, start, targets }: Walked): Poller => ({
  key,
  poll: (context, cursor) =>
    Effect.gen(function* () {
      const keys = targets(context.inputs).map((target) => target.key)
      // A poll that found too much goes on with the next target, so that none waits for ever behind a busy one.
      const first = Math.max(0, keys.indexOf(String(memberOf(cursor, "first"))))
      const states: Record<string, Schema.Json> = {}
      for (const target of keys) {
        const state = memberOf(cursor, "targets", target)
        if (state !== undefined) states[target] = state as Schema.Json
      }
      const items: Array<Item> = []
      let [cursorReset, more, steps] = [false, false, 0]
      let begin = first
      for (let index = 0; index < keys.length; index++) {
        const at = (first + index) % keys.length
        const target = keys[at]!
        let isMore = true
        while (isMore && items.length + pageSize <= maxItems && steps < maxSteps) {
          const state = states[target]
          const step: Step = yield* state === undefined ? start(context, target) : next(context, target, state)
          if (step.items.length > maxItems) return yield* invalid(`the provider's page has more than ${maxItems} items`)
          // The page does not fit into this poll, so the next poll reads it again.
          if (items.length + step.items.length > maxItems) break
          items.push(...step.items)
          states[target] = step.state
          cursorReset ||= step.reset === true
          isMore = step.more
          steps++
        }
        if (isMore) {
          if (!more) begin = at
          more = true
        }
      }
      const written = { first: keys[begin] ?? null, targets: states }
      if (JSON.stringify(written).length > largestCursor) return yield* invalid("the provider's cursors are too long")
      return { items, cursor: written, more, cursorReset }
    })
})
