import { Fragment } from "react"
import { Copy } from "../../parts/Copy.tsx"
import { Panel } from "../../parts/Panel.tsx"
import type { SourceType } from "./SourceTypes.ts"

/** A text in which backticks mark names and values. */
const Marked = ({ text }: { readonly text: string }) =>
  text.split("`").map((part, index) =>
    // The parts of a text stay where they are.
    // oxlint-disable-next-line react/no-array-index-key
    index % 2 === 1 ? <code key={index}>{part}</code> : <Fragment key={index}>{part}</Fragment>
  )

/** What to do at the provider of a source, step by step. `url`: where its requests go; null: nobody posts to it. */
export const SetUp = ({ of, url }: { readonly of: SourceType; readonly url: string | null }) => (
  <Panel title={`How to set up ${of.name}`}>
    {url === null ? null : (
      <p>
        The URL of this source: <code>{url}</code> <Copy text={url} label="Copy the URL" />
      </p>
    )}
    <ol>
      {of.setup.map((step) => (
        <li key={step}>
          <Marked text={step} />
        </li>
      ))}
    </ol>
    {of.documentation_url === null ? null : (
      <p>
        The provider's own guide:{" "}
        <a href={of.documentation_url} target="_blank" rel="noreferrer">
          {of.documentation_url}
        </a>
      </p>
    )}
  </Panel>
)
