import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { gateway, type Row } from "../gateway.ts"
import { Form, TextField, textIn } from "../parts/Form.tsx"
import { liveMs } from "../parts/Pages.ts"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Read, Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

/** Why the caller may not delete the team; null: they may. */
const useObstacle = (): string | null => {
  const { isSignedInOwner } = useRole()
  return isSignedInOwner ? null : "Only an owner who is signed in can delete the team. A key cannot."
}

/** The way to the page, for those who may use it. */
export const TeamDeletionPanel = () => {
  const obstacle = useObstacle()
  return (
    <Panel title="Delete the team">
      {obstacle === null ? (
        <p>
          <Link to="/team/delete">Delete the team with all it has…</Link>
        </p>
      ) : (
        <p className="muted">{obstacle}</p>
      )}
    </Panel>
  )
}

const Confirm = ({ team }: { readonly team: Row<"Team"> }) => {
  const { client, me } = useSession()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const isLast = me.memberships.every(({ team_id }) => team_id === team.id)
  return (
    <Panel title={<bdi>{team.name}</bdi>}>
      <div className="stack">
        <p className="notice bad">
          This cannot be undone. All that the team has is deleted: sources, connections, destinations, workflows,
          requests, events, keys, shares, fixtures and settings.
        </p>
        <Facts
          of={[
            ["Id", <code key="id">{team.id}</code>],
            ["Members", `${team.members.toLocaleString()}, who have no access any more. Users themselves stay`],
            ["At once", "Sources answer 404, keys and shares are invalid, and deliveries, runs and schedules end"],
            ["Then", "Channels unsubscribe at their providers, and the rows are deleted in the background"],
            ["Not done", "Consents at providers are not revoked: revoke the provider accounts first"]
          ]}
        />
        <p>
          {isLast
            ? "You belong to no other team. You are signed out, and only site admins can see how far the deletion is."
            : "The next page shows how far the deletion is, and in the end what was deleted."}
        </p>
        <Form
          call="POST /team/deletion"
          label="Delete the team for ever"
          send={async (form) => {
            const { team_id } = await client.post("/team/deletion", {
              body: { team_id: team.id, team_name: textIn(form, "team_name") }
            })
            await navigate({ to: `/team-deletions/${team_id}` })
            // The caller goes on with another team.
            await refresh()
          }}
        >
          <TextField
            name="team_name"
            label="Name of the team"
            required
            maxLength={200}
            help="Write the name exactly, as a confirmation."
          />
        </Form>
      </div>
    </Panel>
  )
}

export const DeleteTeam = () => {
  const { client } = useSession()
  const obstacle = useObstacle()
  return (
    <>
      <header>
        <h1>Delete the team</h1>
        <div className="actions">
          <Link to="/team" className="button">
            Back
          </Link>
        </div>
      </header>
      {obstacle === null ? (
        <Read name="team" read={() => client.get("/team")}>
          {(team) => <Confirm key={team.id} team={team} />}
        </Read>
      ) : (
        <p className="muted">{obstacle}</p>
      )}
    </>
  )
}

const stages: Readonly<Record<Row<"TeamDeletion">["stage"], string>> = {
  stopping: "Deliveries, runs and channels end. Channels may need 10 minutes to unsubscribe at their providers.",
  removing: "The rows of every table are deleted in small pieces.",
  checking: "Every table is looked through again, until nothing is found. This takes at least 90 seconds.",
  done: "Nothing of the team is left but this record."
}

/** How far the deletion of a team is, and what was deleted. */
export const TeamDeletion = () => {
  const { id = "" } = useParams({ strict: false })
  const deletion = useQuery({
    queryKey: ["team deletion", id],
    // The call is for no team, because nobody has access to the deleted one.
    queryFn: () => gateway().get("/team-deletions/{id}", { params: { path: { id } } }),
    refetchInterval: ({ state }) => (state.data?.stage === "done" ? false : liveMs)
  })
  if (deletion.isPending) return <Loading />
  if (deletion.data === undefined) return <Failure error={deletion.error} retry={deletion.refetch} />
  const { current_table, deleted, deleted_total, finished_at, requested_at, stage } = deletion.data
  const tables = Object.entries(deleted).toSorted(([, a], [, b]) => b - a)
  return (
    <>
      <header>
        <h1>Deletion of a team</h1>
        <Status of={stage} />
        <span className="mono">{id}</span>
      </header>
      <Panel title="Progress">
        <Facts
          of={[
            ["Stage", stages[stage]],
            ["Table", current_table === null ? undefined : <code key="table">{current_table}</code>],
            ["Deleted rows", deleted_total.toLocaleString()],
            ["Requested", <Time key="requested" at={requested_at} precise />],
            ["Finished", finished_at === null ? undefined : <Time key="finished" at={finished_at} precise />]
          ]}
        />
        {stage === "done" ? null : <p className="muted">You can leave this page: the work goes on.</p>}
      </Panel>
      <Panel title="What was deleted">
        {tables.length === 0 ? (
          <p className="muted">Nothing yet.</p>
        ) : (
          <Rows label="Deleted rows by table" columns={["Table", "Rows"]}>
            {tables.map(([table, rows]) => (
              <tr key={table}>
                <td>
                  <code>{table}</code>
                </td>
                <td>{rows.toLocaleString()}</td>
              </tr>
            ))}
          </Rows>
        )}
      </Panel>
    </>
  )
}
