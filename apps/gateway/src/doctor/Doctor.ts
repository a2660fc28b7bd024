import { Cause, Effect, Exit, Layer } from "effect"
import { serverVersion } from "@tidegate/storage/Agreement"
import { databaseOf } from "../OwnInstallation.ts"
import type { Settings } from "../Settings.ts"
import { startFault } from "../StartFault.ts"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"
import { type Check, type Finding, Installation, wrong } from "./Check.ts"

/** How long a check may take. A database that accepts connections and does not answer must not hold the command. */
const patience = "20 seconds"

export interface Result {
  readonly check: string
  readonly findings: ReadonlyArray<Finding>
}

const listed = (found: Finding | ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  Array.isArray(found) ? (found as ReadonlyArray<Finding>) : [found as Finding]

/** The cause of a failure as one line, without a stack. */
const lineOf = (cause: Cause.Cause<unknown>, given: Settings): string => {
  const known = startFault(cause, { settings: given, telemetry: null })
  if (known !== null) return known
  const squashed = Cause.squash(cause)
  // The text of a failed statement is in the error below.
  const error = squashed instanceof Error && squashed.cause instanceof Error ? squashed.cause : squashed
  return (error instanceof Error ? error.message : String(error)).split("\n")[0]!
}

const looked = <R>(
  name: string,
  look: Effect.Effect<Finding | ReadonlyArray<Finding>, unknown, R>,
  given: Settings
): Effect.Effect<Result, never, R> =>
  look.pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () =>
        Effect.succeed(
          wrong(`there was no answer within ${patience}`, "look at the load of this machine and of the database")
        )
    }),
    Effect.map(listed),
    Effect.catchCause((cause) =>
      Effect.succeed([
        wrong(
          `this could not be looked at: ${lineOf(cause, given)}`,
          "see the other findings; the cause may be among them"
        )
      ])
    ),
    Effect.map((findings) => ({ check: name, findings }))
  )

const skipped: Finding = {
  verdict: "skipped",
  says: "not looked at, because the database cannot be used",
  wayOut: null
}

/** Looks at everything in the list, in its order. It never fails: what goes wrong is a finding. */
export const examine = (
  checks: ReadonlyArray<Check>,
  given: Settings,
  keys: KeyRing
): Effect.Effect<ReadonlyArray<Result>> =>
  Effect.gen(function* () {
    const opened = yield* Layer.build(databaseOf(given, keys)).pipe(
      // The pools connect when they are first used.
      Effect.tap((built) => Effect.provideContext(serverVersion, built)),
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => Effect.fail(new Error(`the database did not answer within ${patience}`))
      }),
      Effect.exit
    )
    const results: Array<Result> = []
    for (const check of checks) {
      if (check.of === "machine") results.push(yield* looked(check.name, check.look, given))
      else if (Exit.isFailure(opened)) results.push({ check: check.name, findings: [skipped] })
      else results.push(yield* Effect.provideContext(looked(check.name, check.look, given), opened.value))
    }
    if (Exit.isSuccess(opened)) return results
    const database: Result = {
      check: "database",
      findings: [
        wrong(
          lineOf(opened.cause, given),
          "start the database, or correct DATABASE_URL; the gateway answers 503 to senders until then"
        )
      ]
    }
    return [database, ...results]
  }).pipe(Effect.provideService(Installation, { settings: given, keys }), Effect.scoped)

const worst = ["wrong", "notice", "skipped", "fine"] as const

/** Whether nothing is wrong. Notices do not count. */
export const isWell = (results: ReadonlyArray<Result>): boolean =>
  results.every(({ findings }) => findings.every(({ verdict }) => verdict !== "wrong"))

/** For people: one line for each finding, and the way out below it. */
export const linesOf = (results: ReadonlyArray<Result>): ReadonlyArray<string> => {
  const width = Math.max(...results.map(({ check }) => check.length))
  const count = (verdict: Finding["verdict"]) =>
    results.flatMap(({ findings }) => findings).filter((finding) => finding.verdict === verdict).length
  const rows: Array<string> = []
  for (const { check, findings } of results) {
    for (const found of findings.toSorted((a, b) => worst.indexOf(a.verdict) - worst.indexOf(b.verdict))) {
      rows.push(`${found.verdict.padEnd(7)}  ${check.padEnd(width)}  ${found.says}`)
      if (found.wayOut !== null) rows.push(`${" ".repeat(9 + width)}  -> ${found.wayOut}`)
    }
  }
  const [faults, notices] = [count("wrong"), count("notice")]
  const end = faults === 0 ? "nothing is wrong" : `${faults} wrong`
  return [...rows, notices === 0 ? end : `${end}, ${notices} to look at`]
}

/** For programs. */
export const jsonOf = (results: ReadonlyArray<Result>) => ({
  ok: isWell(results),
  findings: results.flatMap(({ check, findings }) =>
    findings.map(({ says, verdict, wayOut }) => ({ check, verdict, says, way_out: wayOut }))
  )
})
