import { Effect } from "effect"
import { clockSkew, type Skew } from "@tidegate/storage/diagnosis/ServerFacts"
import { type DatabaseCheck, type Finding, fine, notice, wrong } from "../Check.ts"

/** Ids, due times and signatures carry the time of the process: other machines reject signatures that are minutes off. */
const [noticeable, harmful] = [500, 5_000] as const

export const judgeSkew = ({ error, ms }: Skew): Finding => {
  const apart = Math.max(0, Math.abs(ms) - error)
  const shown = Math.round(Math.abs(ms)).toLocaleString("en")
  const says = `this machine's clock is ${shown} ms ${ms > 0 ? "behind" : "ahead of"} the database's`
  const wayOut = "synchronize both machines by NTP (timedatectl set-ntp true); one of them is wrong"
  if (apart > harmful) return wrong(says, wayOut)
  return apart > noticeable ? notice(says, wayOut) : fine("this machine's clock and the database's agree")
}

export const clock: DatabaseCheck = {
  of: "database",
  name: "clock",
  about: "whether the clocks of this machine and the database agree",
  look: Effect.map(clockSkew, judgeSkew)
}
