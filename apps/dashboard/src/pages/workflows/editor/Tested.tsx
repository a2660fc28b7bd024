import type { Row } from "../../../gateway.ts"
import { Facts, Panel } from "../../../parts/Panel.tsx"
import { Preview } from "../../../parts/Preview.tsx"
import { Status } from "../../../parts/Status.tsx"

/** What the last test did at a step. */
export const Tested = ({ step }: { readonly step: Row<"WorkflowTest">["steps"][number] }) => (
  <Panel title="In the test" right={<Status of={step.status} />}>
    <Facts
      of={[
        ["Error", step.error_code === null ? undefined : `${step.error_code}: ${step.error_message ?? ""}`],
        ["Skipped because", step.skip_reason ?? undefined]
      ]}
    />
    <Preview title="Input" of={step.input_preview} />
    <Preview title="Output" of={step.output_preview} />
  </Panel>
)
