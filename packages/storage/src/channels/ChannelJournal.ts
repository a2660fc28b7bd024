import { Clock, Effect, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { isTransient } from "../Database.ts"
import { gathered } from "../Gathered.ts"
import { GroupCommit } from "../journal/GroupCommit.ts"
import { committed } from "../journal/JournalTelemetry.ts"
import { refusable } from "../journal/Refusable.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { type ChannelCommit, commitChannels } from "./ChannelCommit.ts"
import { type Advanced, advanceChannel, decide, type Decided, type Outcome } from "./ChannelWork.ts"
import { type DefinitionOf, type HeldChannel, readChannels } from "./HeldChannel.ts"

/** After this many steps that were outdated when they were to be stored, a step locks its channel first. */
const tries = 3

type Written = Effect.Effect<boolean, SqlError.SqlError>

interface Item {
  readonly commit: ChannelCommit
  readonly done: (written: Written) => void
}

/** Whether a step writes rows that only a separate transaction can write. This is rare. */
const isSpecial = ({ changes }: Decided): boolean =>
  changes.removed || changes.dropsItems || changes.created.length + changes.raised.length + changes.resolved.length > 0

/**
 * Whether everything stays as it is stored: nothing was due, or a call begins that finds the channel as it is. Then the channel
 * stays due, so that another process makes the call after a crash.
 */
const changesNothing = ({ changes, commit, next }: Decided, { due_at, shard }: HeldChannel): boolean =>
  (next.do !== "wait" || commit.due_at === due_at) &&
  commit.state === null &&
  commit.shard === shard &&
  changes.changed.length + changes.events.length + changes.runs.length + Object.keys(changes.counts).length === 0 &&
  !changes.clears.dirty &&
  !changes.clears.run

const bytesOf = ({ changes, state }: ChannelCommit): number =>
  512 + (state?.length ?? 0) + 512 * (changes.changed.length + changes.events.length + changes.runs.length)

/** Applies the result of a channel's step, and stores what follows from it. Null: the channel is gone. */
export type Advance = (
  source_id: string,
  shard: number,
  outcome: Outcome | null,
  /** The channel as its last step has left it; null: it is read. */
  known: HeldChannel | null
) => Effect.Effect<Advanced | null, SqlError.SqlError, SqlClient.SqlClient | Secrets>

/**
 * The reader and writer of channels, one per process. Channels that are due at the same moment are read by one statement and
 * stored by one: a step costs a share of two statements, and no transaction is open between them. The channel's version is the
 * fence: when somebody has changed the channel meanwhile, it is read again, and the step decided again.
 */
export const makeChannelJournal = Effect.fnUntraced(function* (
  definitionOf: DefinitionOf
): Effect.fn.Return<Advance, never, Scope.Scope | SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const run = Effect.runForkWith(yield* Effect.context<Scope.Scope>())
  const read = yield* gathered((ids) => readChannels(ids, definitionOf))

  const answer = (items: ReadonlyArray<Item>, written: (commit: ChannelCommit) => Written): Effect.Effect<void> =>
    Effect.sync(() => {
      for (const { commit, done } of items) done(written(commit))
    })

  const store = (items: ReadonlyArray<Item>): Effect.Effect<void> =>
    Effect.suspend(() =>
      commitChannels(
        sql,
        items.map(({ commit }) => commit)
      )
    ).pipe(
      refusable,
      Effect.flatMap((stored) => answer(items, ({ source_id }) => Effect.succeed(stored.has(source_id)))),
      Effect.catch((error) => {
        // Whether it is stored is not known. The actor begins with what is.
        if (isTransient(error) || items.length === 1) return answer(items, () => Effect.fail(error))
        // One that the database refuses must not fail the others of its batch.
        const half = items.length >> 1
        return Effect.andThen(store(items.slice(0, half)), store(items.slice(half)))
      })
    )

  /** A channel is in a statement once: of two steps from the same version the first one is stored. */
  const storeOnce = (items: ReadonlyArray<Item>): Effect.Effect<void> => {
    const first = new Map<string, Item>()
    for (const item of items) if (!first.has(item.commit.source_id)) first.set(item.commit.source_id, item)
    const others = items.filter((item) => first.get(item.commit.source_id) !== item)
    return Effect.andThen(
      store([...first.values()]),
      answer(others, () => Effect.succeed(false))
    )
  }

  const commits = new GroupCommit<Item>({
    committed: committed("channel"),
    commit: storeOnce,
    concurrency: 2,
    maxRows: 100,
    maxBytes: 4 * 1024 * 1024,
    parallelFrom: 24,
    sizeOf: ({ commit }) => bytesOf(commit),
    run
  })

  const isStored = (commit: ChannelCommit) =>
    Effect.callback<boolean, SqlError.SqlError>((resume) => commits.add({ commit, done: resume }))

  return Effect.fnUntraced(function* (source_id, shard, outcome, known) {
    const alone = advanceChannel(source_id, shard, outcome, definitionOf)
    // How many of the items are new decides, so they are stored first.
    if (outcome?.did === "poll" && outcome.items.length > 0) return yield* alone
    const done = outcome?.did === "poll" ? { ...outcome, stored: 0 } : outcome
    let held: HeldChannel | null = known
    for (let left = tries; left > 0; left--) {
      held ??= (yield* read([source_id])).get(source_id) ?? null
      if (held === null) return null
      const decided: Decided = decide(held, done, shard, yield* Clock.currentTimeMillis)
      if (isSpecial(decided)) return yield* alone
      if (outcome === null && changesNothing(decided, held)) return { ...decided, held }
      if (yield* isStored(decided.commit)) return decided
      held = null
    }
    return yield* alone
  })
})
