import { OnlyOwners } from "./OnlyOwners.tsx"
import { Facts, Panel } from "./Panel.tsx"

/** Settings as members see them. */
export const SettingsToRead = ({
  title,
  value
}: {
  readonly title: string
  readonly value: Readonly<Record<string, unknown>>
}) => (
  <Panel title={title}>
    <Facts of={Object.entries(value).map(([name, value]) => [name, JSON.stringify(value)] as const)} />
    <OnlyOwners may="change this" />
  </Panel>
)
