import { useRole } from "../session.ts"
import { Edit } from "./Edit.tsx"
import { Facts, Panel } from "./Panel.tsx"

/** Settings that owners and the team's key change, and that members only see. */
export const Settings = (settings: Parameters<typeof Edit>[0]) => {
  const { mayOwn } = useRole()
  return mayOwn ? (
    <Edit {...settings} />
  ) : (
    <Panel title={settings.title}>
      <Facts of={Object.entries(settings.value).map(([name, value]) => [name, JSON.stringify(value)] as const)} />
      <p className="muted">Only an owner of the team can change this.</p>
    </Panel>
  )
}
