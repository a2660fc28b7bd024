import type { Check } from "./Check.ts"
import type { Remark } from "./Definition.ts"

/** Remarks about other steps than the selected one: each leads to its step. `isAnswer`: to what the reader has just asked for. */
export const Remarks = ({
  isAnswer,
  of,
  select
}: {
  readonly of: ReadonlyArray<Remark>
  readonly isAnswer: boolean
  readonly select: (stepId: string) => void
}) =>
  of.length === 0 ? null : (
    <ul className="notice bad plain" role={isAnswer ? "alert" : undefined} aria-label="Faults of the steps">
      {of.map(({ message, stepId }) => (
        <li key={`${stepId ?? ""} ${message}`}>
          {stepId === null ? null : (
            <button type="button" className="link" onClick={() => select(stepId)}>
              {stepId}
            </button>
          )}{" "}
          {message}
        </li>
      ))}
    </ul>
  )

/** Remarks about the selected step. */
export const StepRemarks = ({ isAnswer, of }: { readonly of: ReadonlyArray<Remark>; readonly isAnswer: boolean }) =>
  of.map(({ message }) => (
    <p key={message} role={isAnswer ? "alert" : undefined} className="notice bad">
      {message}
    </p>
  ))

const summaryOf = ({ failure, isCurrent, issues, warnings }: Check): string => {
  if (failure !== null) return `The steps could not be checked: ${failure}`
  if (!isCurrent) return "The steps are being checked…"
  const [faults, few] = [issues.length, warnings.length]
  if (faults > 0)
    return faults === 1 ? "1 fault: a save would be refused." : `${faults} faults: a save would be refused.`
  return few === 0 ? "No faults." : few === 1 ? "No faults, and 1 warning." : `No faults, and ${few} warnings.`
}

/** What the check of the steps has found so far, in a sentence. */
export const CheckNote = ({ of }: { readonly of: Check }) => (
  <p className="muted" role="status" aria-label="Check of the steps">
    {summaryOf(of)}
  </p>
)
