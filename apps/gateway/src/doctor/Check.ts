import { Context, type Effect } from "effect"
import type { Database } from "@tidegate/storage/Database"
import type { KeyRing, Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Settings } from "../Settings.ts"

/**
 * "wrong": the gateway loses something, stands still or soon will. "notice": it works, and somebody should look. "skipped": it could not be
 * looked at, because something else is wrong.
 */
export type Verdict = "fine" | "notice" | "wrong" | "skipped"

/** What a check has found: one sentence, and what to do about it. */
export interface Finding {
  readonly verdict: Verdict
  readonly says: string
  readonly wayOut: string | null
}

export const fine = (says: string): Finding => ({ verdict: "fine", says, wayOut: null })
export const notice = (says: string, wayOut: string): Finding => ({ verdict: "notice", says, wayOut })
export const wrong = (says: string, wayOut: string): Finding => ({ verdict: "wrong", says, wayOut })

/** The installation that is looked at: the settings of this process, and the keys they lead to. */
export class Installation extends Context.Service<
  Installation,
  { readonly settings: Settings; readonly keys: KeyRing }
>()("@tidegate/gateway/doctor/Installation") {}

type Look<R> = Effect.Effect<Finding | ReadonlyArray<Finding>, unknown, R>

interface Named {
  readonly name: string
  /** What it looks at, for the help. */
  readonly about: string
}

/** A check of this machine or of another server; it needs no database. */
export interface MachineCheck extends Named {
  readonly of: "machine"
  readonly look: Look<Installation>
}

/** A check that reads the database. It is skipped if the database cannot be reached. */
export interface DatabaseCheck extends Named {
  readonly of: "database"
  readonly look: Look<Installation | Database | Secrets>
}

export type Check = MachineCheck | DatabaseCheck

/** A number of bytes for people. */
export const sizeOf = (bytes: number): string => {
  const units = ["bytes", "KB", "MB", "GB", "TB", "PB"]
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** step
  return `${value < 10 && step > 0 ? value.toFixed(1) : Math.round(value)} ${units[step]}`
}

/** A number of seconds for people. */
export const timeOf = (seconds: number): string => {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} minutes`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} hours` : `${Math.round(seconds / 86_400)} days`
}
