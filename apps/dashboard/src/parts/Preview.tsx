import { isMembers } from "../json.ts"
import { Text } from "./Body.tsx"

/** The value of a payload that the API shows. */
export const previewOf = (preview: unknown): unknown =>
  isMembers(preview) && "preview" in preview ? preview["preview"] : preview

/** What the API does not show of a payload, in a sentence each. */
const remarksOf = (preview: unknown): ReadonlyArray<string> => {
  if (!isMembers(preview)) return []
  const { redacted_paths: paths, reason, redacted, truncated } = preview
  return [
    ...(typeof reason === "string" ? [`It is not shown: ${reason}.`] : []),
    ...(truncated === true ? ["Only its beginning is shown."] : []),
    ...(redacted === true ? [`Secrets are left out${Array.isArray(paths) ? `: ${paths.join(", ")}` : ""}.`] : [])
  ]
}

/** What went into a step or came out of it. */
export const Preview = ({ of, title }: { readonly title: string; readonly of: unknown }) => {
  if (of === undefined || of === null) return null
  const remarks = remarksOf(of)
  const value = previewOf(of)
  return (
    <details open>
      <summary>{title}</summary>
      {remarks.map((remark) => (
        <p key={remark} className="muted">
          {remark}
        </p>
      ))}
      {value === null && remarks.length > 0 ? null : <Text text={JSON.stringify(value) ?? ""} />}
    </details>
  )
}
