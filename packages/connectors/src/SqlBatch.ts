import { Effect, Exit, type Fiber } from "effect"
import type { Message } from "@tidegate/model/Message"
import { Batcher, type BatchLimits } from "@tidegate/runtime/Batcher"
import type { BatchMost } from "./Batches.ts"
import type { Answer, AttemptFacts, Session } from "./Connector.ts"
import type { SessionFailure } from "./Failure.ts"
import type { Row } from "./SqlRow.ts"

/** Sessions that insert rows: one by one, or several with one statement. */

/**
 * The limits of one statement: more rows would save no more time, and more bytes would block the event loop. 500 rows of three columns are far fewer
 * parameters than the 65,535 of both protocols.
 */
export const largestStatement: BatchMost = { maxCount: 500, maxBytes: 1024 * 1024 }

/** Why nothing was inserted. `isOfRow`: one of the rows may be the reason, so the server may accept the statement without it. */
export interface NotInserted {
  readonly failure: SessionFailure
  readonly isOfRow: boolean
}

export interface Inserting<E> {
  /** Null: each row has a statement of its own. */
  readonly limits: BatchLimits | null
  readonly rowOf: (message: Message, facts: AttemptFacts) => Effect.Effect<Row, SessionFailure>
  /** Inserts all of these rows or none, and returns how many were not there before. */
  readonly insert: (rows: ReadonlyArray<Row>, mayStart: () => boolean) => Effect.Effect<number, E>
  readonly judge: (error: E, rows: ReadonlyArray<Row>) => NotInserted
}

type Sent = Effect.Effect<Answer, SessionFailure>

/** A row that waits for others, or for its statement. */
interface Entry {
  readonly row: Row
  readonly bytes: number
  readonly mayStart: () => boolean
  /** Null: nobody waits for it any more. */
  resume: ((sent: Sent) => void) | null
}

/** `rows`: the number of rows of the statement. If there are several, it is not known which of them existed before. */
const answerOf = (inserted: number, rows: number): Answer => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(rows === 1 ? { inserted } : { inserted, rows })),
  bodyTruncated: false
})

/**
 * A session whose rows wait for other rows as long as `limits` says. Each row has its own result: if the server refuses a statement because of one
 * row, the statement is split in half until that row is alone. Rows that are too large for a batch, and rows of workflow steps, do not wait.
 */
export const insertingSession = Effect.fnUntraced(function* <E>({ insert, judge, limits, rowOf }: Inserting<E>) {
  const run = Effect.runForkWith(yield* Effect.context())

  const alone = (row: Row, mayStart: () => boolean): Effect.Effect<Answer, SessionFailure> =>
    insert([row], mayStart).pipe(
      Effect.map((inserted) => answerOf(inserted, 1)),
      Effect.mapError((error) => judge(error, [row]).failure)
    )
  if (limits === null) {
    const send: Session["send"] = (message, facts, mayStart) =>
      Effect.flatMap(rowOf(message, facts), (row) => alone(row, mayStart))
    return { send }
  }

  const end = (entries: ReadonlyArray<Entry>, sent: Sent): void => {
    for (const entry of entries) {
      entry.resume?.(sent)
      entry.resume = null
    }
  }
  const isAwaited = ({ resume }: Entry): boolean => resume !== null

  const insertAll = (all: ReadonlyArray<Entry>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const entries = all.filter(isAwaited)
      if (entries.length === 0) return Effect.void
      const rows = entries.map(({ row }) => row)
      return Effect.matchEffect(
        insert(rows, () => entries.every(({ mayStart }) => mayStart())),
        {
          onSuccess: (inserted) => Effect.sync(() => end(entries, Effect.succeed(answerOf(inserted, rows.length)))),
          onFailure: (error) => {
            const { failure, isOfRow } = judge(error, rows)
            if (!isOfRow || rows.length === 1) return Effect.sync(() => end(entries, Effect.fail(failure)))
            const half = entries.length >> 1
            return Effect.andThen(insertAll(entries.slice(0, half)), insertAll(entries.slice(half)))
          }
        }
      )
    })

  /** The statements of entries that no longer wait for others. */
  const statements = new WeakMap<Entry, { readonly entries: ReadonlyArray<Entry>; readonly fiber: Fiber.Fiber<void> }>()
  const batcher = new Batcher<Entry>(limits, run, (entries) => {
    const fiber = run(insertAll(entries))
    for (const entry of entries) statements.set(entry, { entries, fiber })
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) end(entries, Effect.failCause(exit.cause))
    })
  })
  const withdraw = (entry: Entry): void => {
    entry.resume = null
    batcher.remove(entry)
    const statement = statements.get(entry)
    if (statement !== undefined && !statement.entries.some(isAwaited)) statement.fiber.interruptUnsafe()
  }

  const send: Session["send"] = Effect.fnUntraced(function* (message, facts, mayStart) {
    const row = yield* rowOf(message, facts)
    const bytes = row.values.reduce((sum, value) => sum + Buffer.byteLength(value), 0)
    if (row.isLarge || bytes > limits.maxBytes || facts.isStep === true) return yield* alone(row, mayStart)
    return yield* Effect.callback<Answer, SessionFailure>((resume) => {
      const entry: Entry = { row, bytes, mayStart, resume }
      batcher.add(entry)
      return Effect.sync(() => withdraw(entry))
    })
  })
  return { send }
})
