import { useRole } from "../session.ts"
import { Edit } from "./Edit.tsx"
import { Facts, Panel } from "./Panel.tsx"

/** Settings that members only see. */
export const SettingsToRead = ({
  title,
  value
}: {
  readonly title: string
  readonly value: Readonly<Record<string, unknown>>
}) => (
  <Panel title={title}>
    <Facts of={Object.entries(value).map(([name, value]) => [name, JSON.stringify(value)] as const)} />
    <p className="muted">Only an owner of the team can change this.</p>
  </Panel>
)

/** Settings that owners and the team's key change, and that members only see. */
export const Settings = ({
  value,
  ...settings
}: Omit<Parameters<typeof Edit>[0], "value"> & Parameters<typeof SettingsToRead>[0]) => {
  const { mayOwn } = useRole()
  return mayOwn ? <Edit value={value} {...settings} /> : <SettingsToRead title={settings.title} value={value} />
}
