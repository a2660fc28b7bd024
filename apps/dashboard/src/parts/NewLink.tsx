import { Link } from "@tanstack/react-router"
import { useRole } from "../session.ts"

/** The link in the head of a list to the page that makes a new one, for whoever may make one. */
export const NewLink = ({
  children,
  isOffered = true,
  to
}: {
  readonly children: string
  readonly isOffered?: boolean
  readonly to: string
}) => {
  const { mayChange } = useRole()
  return isOffered && mayChange ? (
    <div className="actions">
      <Link to={to} className="button">
        {children}
      </Link>
    </div>
  ) : null
}
