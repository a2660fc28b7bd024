import { createHmac, timingSafeEqual } from "node:crypto"

/*
 * Tokens for URLs with which strangers reach one waiting step of a run: a callback, or a decision by a link. A token names the step and
 * is signed, so it is stored nowhere and nobody can make one for another step. It has no time of its own: the step takes a signal only
 * while it waits.
 */

/** The step that a token is for. */
export interface StepPlace {
  readonly team_id: string
  readonly workflow_id: string
  readonly run_id: string
  readonly step_id: string
}

/** The keys of tokens: the first one signs, all are accepted. */
export type StepTokenKeys = readonly [string, ...ReadonlyArray<string>]

/** Longer texts are no tokens; ids of steps have at most 96 characters. */
const longest = 1_024
const form = /^([\w-]+)\.([\w-]{43})$/

const signature = (key: string, place: string): string =>
  createHmac("sha256", key).update(`step ${place}`).digest("base64url")

export const stepToken = ([key]: StepTokenKeys, { run_id, step_id, team_id, workflow_id }: StepPlace): string => {
  const place = Buffer.from([team_id, workflow_id, run_id, step_id].join(" ")).toString("base64url")
  return `${place}.${signature(key, place)}`
}

/** Null: nobody with one of the keys has made this token. Fails closed. */
export const readStepToken = (keys: StepTokenKeys, token: string): StepPlace | null => {
  const [, place = "", signed = ""] = token.length > longest ? [] : (form.exec(token) ?? [])
  if (signed === "") return null
  const given = Buffer.from(signed)
  if (!keys.some((key) => timingSafeEqual(Buffer.from(signature(key, place)), given))) return null
  const [team_id = "", workflow_id = "", run_id = "", ...step] = Buffer.from(place, "base64url").toString().split(" ")
  return { team_id, workflow_id, run_id, step_id: step.join(" ") }
}
