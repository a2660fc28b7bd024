import { useState } from "react"
import { Duration } from "../../parts/Duration.tsx"
import { lengthOf } from "../../parts/Time.tsx"
import { listOf, type RuleForm, type RuleKind } from "./Rule.ts"

type Retry = RuleForm<"retry">["rule"]

const day = 86_400_000
/** No attempt starts later than this after the first one. */
const last = 7 * day
const defaults = { strategy: "exponential", count: 5, interval: 60_000 } as const

/** Milliseconds in words: from two days on in days with one decimal. */
const said = (ms: number): string => (ms < 2 * day ? lengthOf(ms) : `${(ms / day).toFixed(1)} days`)

/** When the retries come, each as the time after the first attempt. */
const scheduleOf = ({ count, interval, strategy }: typeof defaults | Required<Pick<Retry, keyof typeof defaults>>) => {
  const times: Array<number> = []
  let at = 0
  for (let index = 0; index < count; index++) {
    at += strategy === "linear" ? interval : interval * 2 ** index
    if (at > last) break
    times.push(at)
  }
  return times
}

const shown = 8

const Form = ({ change, rule }: RuleForm<"retry">) => {
  const { count, interval, response_status_codes, strategy } = { ...defaults, ...rule }
  const [codes, setCodes] = useState((response_status_codes ?? []).join(", "))
  const [isKnown, setKnown] = useState(true)
  const write = (next: Retry) => {
    setKnown(true)
    change(next)
  }
  const unknown = () => {
    setKnown(false)
    change(null)
  }
  const times = scheduleOf({ count, interval, strategy })
  return (
    <>
      <div className="bar">
        <label className="field">
          Interval
          <select
            value={strategy}
            onChange={({ target }) => write({ ...rule, strategy: target.value as "linear" | "exponential" })}
          >
            <option value="exponential">doubles each time</option>
            <option value="linear">is always the same</option>
          </select>
        </label>
        <Duration
          label="First retry after"
          ms={interval}
          change={(ms) => (ms === null ? unknown() : write({ ...rule, interval: ms }))}
        />
        <label className="field">
          Retries
          <input
            type="number"
            className="short"
            min={1}
            max={50}
            defaultValue={count}
            onChange={({ target }) =>
              target.value === "" ? unknown() : write({ ...rule, count: Math.trunc(Number(target.value)) })
            }
          />
        </label>
        <label className="field">
          Only after these answers
          <input
            value={codes}
            placeholder="429, 500-599, !501"
            onChange={({ target }) => {
              setCodes(target.value)
              const { response_status_codes: _, ...others } = rule
              const list = listOf(target.value)
              write(list.length === 0 ? others : { ...others, response_status_codes: list })
            }}
          />
        </label>
      </div>
      {isKnown ? (
        <p className="muted" role="status">
          Retries come{" "}
          {times
            .slice(0, shown)
            .map((ms) => said(ms))
            .join(", ")}
          {times.length > shown ? `, … ${said(times.at(-1)!)}` : ""} after the first attempt
          {times.length < count ? ", and none after 7 days" : ""}.
        </p>
      ) : null}
    </>
  )
}

export const retryRule: RuleKind<"retry"> = {
  type: "retry",
  title: "Retry",
  about: "A failed delivery is repeated. Without this rule a failure is final.",
  fresh: { type: "retry", ...defaults },
  Form
}
