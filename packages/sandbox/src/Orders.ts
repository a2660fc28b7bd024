import type { makeDecisions } from "./Decisions.ts"
import type { Job } from "./Job.ts"
import type { Order } from "./Messages.ts"
import { countWait } from "./SandboxTelemetry.ts"
import type { Turn } from "./Turns.ts"

/** Largest batch for a child: this many calls, and no further call once their texts have this many characters. */
const batchCalls = 64
const batchCharacters = 256 * 1024
/** Number of code texts that a child keeps, and their characters together. */
const maxCodes = 64
const maxCodeCharacters = 8 * 1024 * 1024

/**
 * The calls of a turn that form one batch, with the texts that the child receives. A call whose input cannot be written as text is
 * left out and passed to `unwritable`.
 */
export const batchOf = (
  { item, more }: Turn<Job>,
  unwritable: (job: Job) => void
): { readonly jobs: ReadonlyArray<Job>; readonly texts: Array<string> } => {
  const jobs: Array<Job> = []
  const texts: Array<string> = []
  let characters = 0
  const put = (job: Job): void => {
    clearTimeout(job.waitTimer)
    countWait(job.since)
    try {
      const own = job.texts()
      for (const text of own) characters += text.length
      texts.push(...own)
      jobs.push(job)
    } catch {
      unwritable(job)
    }
  }
  put(item)
  const mayGoAlong = ({ isAlone }: Job): boolean =>
    !item.isAlone && !isAlone && jobs.length < batchCalls && characters < batchCharacters
  for (let job = more(mayGoAlong); job !== undefined; job = more(mayGoAlong)) put(job)
  return { jobs, texts }
}

/**
 * The order for a batch of calls of the same code. `codes`: the codes that the child has, with the characters of each; it is changed
 * to those that the child has after the order.
 */
export const orderOf = (
  codes: Map<string, number>,
  jobs: ReadonlyArray<Job>,
  { code, key, wallMs }: Job,
  pathOf: ReturnType<typeof makeDecisions>["path"]
): Order => {
  if (key === null) return { type: "check", code }
  const isKnown = codes.delete(key)
  codes.set(key, code.length)
  let characters = 0
  for (const length of codes.values()) characters += length
  const forget: Array<string> = []
  for (const [oldest, length] of codes) {
    if ((codes.size <= maxCodes && characters <= maxCodeCharacters) || oldest === key) break
    characters -= length
    codes.delete(oldest)
    forget.push(oldest)
  }
  return {
    type: "run",
    key,
    wallMs,
    paths: jobs.map(({ path }) => path ?? pathOf(key)),
    ...(isKnown ? {} : { code }),
    ...(forget.length > 0 ? { forget } : {})
  }
}
