import { useEffect } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useRead } from '../api/query.ts'
import { acting, isAdmin } from '../api/session.ts'
import { palette } from '../copy/common.ts'
import { go, to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'

/** The page of an id: of a cell, and for admins of an account or an actor; null: nothing that the reader may see. */
async function pageOf(id: string): Promise<string | null> {
  const own = acting.peek() ? { acting: acting.peek() as string } : {}
  if ((await client.try.cell_get({ id, ...own })).ok) return to(`/cells/${id}`)
  if (!isAdmin.peek()) return null
  if ((await client.try.admin_account_get({ account_id: id, ...own })).ok) return to(`/people/${id}`)
  const { actors } = await client.actor_lookup({ ids: [id] })
  const username = actors[0]?.username
  if (!username) return null
  const { accounts } = await client.admin_account_list({ query: username, ...own })
  const owner = accounts.find(({ account }) => account.username === username)
  return owner ? to(`/people/${owner.account.id}`) : null
}

/** Finds out what an id is, and goes to its page. */
export default function GoPage({ params: { id = '' } }: PageProps) {
  const found = useRead([acting.value, 'go', id], async () => ({ href: await pageOf(id) }))
  const href = found.data?.href
  useEffect(() => {
    if (href) go(href, { replace: true })
  }, [href])
  return (
    <Page title={palette.id}>
      <Resource of={found}>
        {({ href }) =>
          href === null && (
            <Empty
              icon="search"
              title={palette.nothing}
              action={<ButtonLink href={to('/')}>{palette.go_home}</ButtonLink>}
            >
              {palette.id_unknown}
            </Empty>
          )
        }
      </Resource>
    </Page>
  )
}
