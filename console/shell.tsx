import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useCall, useRead } from './api/query.ts'
import { useRefresh } from './api/refresh.ts'
import {
  actAs,
  acting,
  adminsAmong,
  forgetSession,
  isAdmin,
  isEnded,
  loadSession,
  type Session,
  session,
  signedIn,
  unreachable,
} from './api/session.ts'
import { stepUp } from './api/step-up.ts'
import { Bars } from './bars.tsx'
import { shell, words } from './copy/common.ts'
import { EntryCard, EntryFrame } from './entry/entry-card.tsx'
import { isHelpOpen, isPaletteOpen } from './keys.ts'
import { leaveOldBuild } from './lib/new-build.ts'
import { go, match, path, to } from './lib/router.ts'
import { Palette } from './palette.tsx'
import { Rail } from './rail.tsx'
import { type PageProps, type Route, routes } from './routes.ts'
import { Shortcuts } from './shortcuts.tsx'
import { StepUpDialog } from './step-up-dialog.tsx'
import { Button, ButtonLink, offline } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Page } from './ui/page.tsx'
import { Empty, ErrorNote, Skeleton } from './ui/resource.tsx'
import { Secrets } from './ui/secret.tsx'
import { Text } from './ui/text.tsx'
import { Toasts } from './ui/toast.tsx'

/** The frame: rail or bottom bar, the page, and what may cover it. */
export function Shell() {
  const found = useRoute()
  const isOpenToAll = found?.route.who === 'all'
  const own = signedIn.value
  if (unreachable.value)
    return (
      <main class="alone">
        <EntryFrame title={shell.unreachable_title}>
          <ErrorNote error={unreachable.value} onRetry={() => void loadSession()} />
        </EntryFrame>
      </main>
    )
  if (session.value === undefined) return <div class="alone" aria-busy="true" />
  if (isOpenToAll)
    return (
      <main class="alone">
        {found && <Loading {...found} />}
        <Toasts />
      </main>
    )
  if (!own)
    return (
      <main class="alone">
        <EntryCard />
        <Toasts />
      </main>
    )
  const who = `${own.account.id} ${acting.value}`
  return (
    <div class="shell">
      <a class="skip" href="#main">
        {words.skip}
      </a>
      <Bars />
      <RailWithOffers key={who} />
      <main id="main" tabIndex={-1}>
        <PageFor found={found} own={own} key={who} />
      </main>
      <Over />
      <Toasts />
    </div>
  )
}

/** What covers the page; a component of its own, so that the page is not drawn again when one opens. */
const Over = () => (
  <>
    {isHelpOpen.value && <Shortcuts />}
    {isPaletteOpen.value && <Palette />}
    {stepUp.value && <StepUpDialog {...stepUp.value} />}
    <Secrets />
    {isEnded.value && <Ended />}
  </>
)

function RailWithOffers() {
  const { data } = useCall('role_grant_offer_list', { limit: 50 })
  return <Rail waiting={data?.offers.length ?? 0} />
}

type Found = { route: Route; params: Record<string, string> }

function useRoute(): Found | undefined {
  const at = path.value
  for (const route of routes) {
    const params = match(route.path, at)
    if (params) return { route, params }
  }
  return undefined
}

function PageFor({ found, own }: { found: Found | undefined; own: Session }) {
  useRefresh(isAdmin.value && /^admin$|^\/cells\//.test(found?.route.who ?? found?.route.path ?? ''))
  // Shows nothing of what was read, because somebody else may sit there now; unsaved text stays in memory.
  if (isEnded.value) return null
  if (!found)
    return (
      <Page title={shell.not_found_title}>
        <Empty icon="search" action={<ButtonLink href={to('/')}>{shell.go_home}</ButtonLink>}>
          {shell.not_found}
        </Empty>
      </Page>
    )
  if (found.route.who === 'admin' && !isAdmin.value) return <Forbidden own={own} />
  return <Loading {...found} />
}

/** Another actor of the account may be an admin. */
function Forbidden({ own: { account, actor, actors } }: { own: Session }) {
  const others = actors.filter(({ id }) => id !== actor?.id)
  const admins = useRead([account.id, 'admins', others], () => adminsAmong(others)).data ?? []
  return (
    <Page title={shell.forbidden_title}>
      <Empty
        icon="lock"
        action={
          <span class="row">
            {admins.map(({ id, name }) => (
              <Button key={id} onClick={() => void actAs(id)}>
                <Text>{shell.act_as(name)}</Text>
              </Button>
            ))}
            <ButtonLink href={to('/')}>{shell.go_home}</ButtonLink>
          </span>
        }
      >
        <Text long>{shell.forbidden(actor?.name ?? account.username)}</Text>
      </Empty>
    </Page>
  )
}

const noAnswer = { reason: 'not_connected', data: {}, status: 0 }
const loadedPages = new Map<Route['load'], ComponentType<PageProps>>()

/** Loads a page's code. A missing chunk means that the server now has another version, if there is a connection. */
function Loading({ route: { load }, params }: Found) {
  const [, draw] = useState(0)
  const [failed, fail] = useState<{ load: Route['load']; isOffline: boolean } | null>(null)
  const Loaded = loadedPages.get(load)
  useEffect(() => {
    if (Loaded || failed?.load === load) return
    load().then(
      (module) => {
        loadedPages.set(load, module.default)
        draw((count) => count + 1)
      },
      async () => {
        const isOffline = !navigator.onLine || Boolean(offline.peek())
        if (!isOffline) await leaveOldBuild()
        fail({ load, isOffline })
      },
    )
  }, [load, failed])
  if (Loaded) return <Loaded params={params} key={load.toString() + (params.id ?? params.name ?? '')} />
  if (failed?.load === load)
    return failed.isOffline ? (
      <Page title={shell.unreachable_title}>
        <ErrorNote error={noAnswer} onRetry={() => fail(null)} />
      </Page>
    ) : (
      <Page title={shell.new_version}>
        <Empty icon="refresh-cw" action={<Button onClick={() => location.reload()}>{shell.reload}</Button>} />
      </Page>
    )
  return <Skeleton lines={4} />
}

/** Replaces the page: typed text stays until another account signs in. */
function Ended() {
  return (
    <Dialog
      title={shell.ended_title}
      canDismiss={false}
      onClose={() => {}}
      foot={
        <Button
          kind="primary"
          onClick={() => {
            isEnded.value = false
            forgetSession()
            go(location.href, { replace: true })
          }}
        >
          {shell.sign_in_again}
        </Button>
      }
    >
      <p>{shell.ended}</p>
    </Dialog>
  )
}
