import { Text } from "./Body.tsx"

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value of a payload that the API shows. */
export const previewOf = (preview: unknown): unknown =>
  isObject(preview) && "preview" in preview ? preview["preview"] : preview

/** What the API does not show of a payload, in a sentence each. */
const remarksOf = (preview: unknown): ReadonlyArray<string> => {
  if (!isObject(preview)) return []
  const { redacted_paths: paths, reason, redacted, truncated } = preview
  return [
    ...(typeof reason === "string" ? [`It is not shown: ${reason}.`] : []),
    ...(truncated === true ? ["Only its beginning is shown."] : []),
    ...(redacted === true ? [`Secrets are left out${Array.isArray(paths) ? `: ${paths.join(", ")}` : ""}.`] : [])
  ]
}

/** What went into a step or came out of it. */
export const Preview = ({ of, title }: { readonly title: string; readonly of: unknown }) =>
  of === undefined || of === null ? null : (
    <details open>
      <summary>{title}</summary>
      {remarksOf(of).map((remark) => (
        <p key={remark} className="muted">
          {remark}
        </p>
      ))}
      <Text text={JSON.stringify(previewOf(of)) ?? ""} />
    </details>
  )
