import { isBudgetSpent, inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import type { Call, Execution, SyntaxProblem } from "./Call.ts"
import { callLimits } from "./CallLimits.ts"
import type { Result } from "./ChildProcess.ts"
import { roundedJson } from "./Digits.ts"
import { executionOf, killedError, parsedAtOnce, withoutResult } from "./Executions.ts"
import { type Input, isDeeper, type Path } from "./Messages.ts"
import { countEnd } from "./SandboxTelemetry.ts"
import type { Offence } from "./Strikes.ts"

/** A call or check that waits for a child. It is completed once. */
export interface Job {
  /** When it was put in the queue, on the monotonic clock. */
  readonly since: number
  readonly teamId: string
  readonly code: string
  /** Key of the code among the warm ones; null for code that is only checked. */
  readonly key: string | null
  /** The texts that a child receives. Throws if the call cannot be written: it is nested too deeply, or longer than a string may be. */
  readonly texts: () => ReadonlyArray<string>
  /** The path that the job has to take; null: decided by its code. */
  path: Path | null
  readonly ran: (result: Result, pinned: string | null, startedAt: number) => void
  readonly checked: (problem: SyntaxProblem | null) => void
  readonly killed: (offence: Offence, startedAt: number) => void
  readonly unwritable: () => void
  readonly unavailable: (reason: string) => void
  waitTimer: NodeJS.Timeout | undefined
  wallMs: number
  /** The job runs in a batch of its own: so that the guilty job is known when its child dies, or because it has a longer time limit. */
  isAlone: boolean
  /** Grows each time a child dies under the job without a known cause. */
  suspicion: number
  isSettled: boolean
}

/** Nesting levels above which a request's body is refused. */
const maxDepth = 4_000

const wrongAnswer = "a child gave the wrong answer"
const state = () => ({
  since: performance.now(),
  waitTimer: undefined,
  wallMs: callLimits.ms,
  suspicion: 0,
  isSettled: false
})

export const keyOf = ({ codeHash, teamId }: Call): string => `${teamId} ${codeHash}`

export const runJob = (
  call: Call,
  whenDone: (execution: Execution) => void,
  whenUnavailable: (reason: string) => void
): Job => {
  const done = countEnd(whenDone)
  /** Whether the code received rounded numbers. */
  let isRounded = false
  const unavailable = countEnd(whenUnavailable)
  return {
    ...state(),
    teamId: call.teamId,
    code: call.code,
    key: keyOf(call),
    // A call without its handler cannot show a difference between contexts, so it is not compared.
    path: call.isolation === "fresh" || call.isLoadedOnly === true ? "fresh" : null,
    isAlone: false,
    texts: () => {
      const { headers, method, parsed_query, path, query } = call.request
      const received = call.bodyText?.() ?? null
      const input: Input = {
        request: { headers, query, parsed_query, path, method },
        context: { ...call.context, env: call.env },
        ...(call.isLoadedOnly === true ? { isLoadedOnly: true } : {}),
        ...(received === null ? {} : { isReceived: true })
      }
      if (received !== null) return [JSON.stringify(input), received]
      const { body } = call.request
      if (isDeeper(body, maxDepth)) throw new RangeError("too deep")
      const given = roundedJson(body)
      isRounded = given.isRounded
      return [JSON.stringify(input), given.text]
    },
    ran: (result, pinned) => {
      // A longer body is parsed in turn with other long work.
      if (result.body.length <= parsedAtOnce) return done(executionOf(call, result, pinned, isRounded))
      const finish = (): void => {
        const since = performance.now()
        done(executionOf(call, result, pinned, isRounded))
        isBudgetSpent(since)
      }
      if (isBudgetSpent()) inLaterTurn(finish)
      else finish()
    },
    checked: () => unavailable(wrongAnswer),
    unwritable: () =>
      done(
        withoutResult(
          {
            code: "MEMORY_LIMIT",
            name: "RangeError",
            message: "the request is nested too deeply to be handed over",
            line: null
          },
          [],
          Date.now()
        )
      ),
    killed: (offence, startedAt) => done(withoutResult(killedError(offence), ["its log lines are lost"], startedAt)),
    unavailable
  }
}

export const checkJob = (
  code: string,
  done: (problem: SyntaxProblem | null) => void,
  unavailable: (reason: string) => void
): Job => ({
  ...state(),
  // All checks share one team. So a burst of checks delays other checks, not calls.
  teamId: "",
  code,
  key: null,
  path: null,
  isAlone: true,
  texts: () => [],
  ran: () => unavailable(wrongAnswer),
  checked: done,
  killed: () => done({ message: "the code cannot be compiled within the limits", line: null }),
  unwritable: () => done({ message: "the code cannot be handed over", line: null }),
  unavailable
})
