import { ActorName } from '../api/actor-name.tsx'
import { ActorPicker } from '../api/actor-picker.tsx'
import { usePages } from '../api/query.ts'
import { type Session, signedIn } from '../api/session.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { place, setQuery, to } from '../lib/router.ts'
import { isUuid } from '../lib/uuid.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Field, SelectField } from '../ui/field.tsx'
import { RowLink, Tabs } from '../ui/link.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { useTypedFilter } from '../ui/typed-filter.ts'
import { NewCell } from './new-cell.tsx'

type View = '' | 'mine' | 'shared' | 'public'
const views: readonly { view: View; label: string }[] = [
  { view: '', label: cells.all },
  { view: 'mine', label: cells.mine },
  { view: 'shared', label: cells.shared },
  { view: 'public', label: cells.public },
]

export default function CellsPage() {
  const { query } = place.value
  const own = signedIn.value as Session
  const view = (query.get('view') ?? '') as View
  const [kind, path] = [query.get('kind'), query.get('path')]
  const owner = view === 'mine' ? (own.actor?.id ?? null) : ownerIn(query)
  const list = usePages(
    'cell_list',
    {
      ...(owner && { created_by: owner }),
      ...(view === 'shared' && { shared_with: 'me' as const }),
      ...(view === 'public' && { visibility: 'public' as const }),
      ...(kind && { kind }),
      ...(path
        ? { path_prefix: path }
        : { order_by: query.get('order') === 'changed' ? 'updated_at' : 'created_at' }),
    },
    ({ cells }) => cells,
  )
  const isFiltered = Boolean(kind || path || ownerIn(query))
  const create = (
    <Button kind="primary" icon="plus" shortcut="n" onClick={() => setQuery({ dialog: 'new' })}>
      {cells.new_cell}
    </Button>
  )
  const tabs = views.map((one) => ({
    href: to('/cells', { view: one.view }),
    label: one.label,
    isCurrent: view === one.view,
  }))
  return (
    <Page title={cells.title} actions={create} tabs={<Tabs label={cells.views} tabs={tabs} />}>
      <section class="section">
        <Filters />
        <Resource
          of={list}
          lines={6}
          empty={
            isFiltered ? (
              <Empty
                icon="search"
                title={cells.none_match}
                action={
                  <Button onClick={() => setQuery({ kind: null, path: null, owner: null })}>
                    {words.clear_filters}
                  </Button>
                }
              />
            ) : (
              <Empty icon="boxes" title={cells.none[view]}>
                {cells.none_about[view]}
              </Empty>
            )
          }
        >
          {(rows) => (
            <DataTable
              label={cells.title}
              rows={rows}
              keyOf={({ id }) => id}
              hasMore={list.hasMore}
              more={list.more}
              columns={[
                {
                  head: cells.label,
                  width: 'minmax(0, 2fr)',
                  cell: (one) => (
                    <RowLink href={to(`/cells/${one.id}`)}>
                      <Text>{cellLabel(one)}</Text>
                    </RowLink>
                  ),
                },
                { head: cells.kind, cell: ({ kind }) => kind && <Text>{kind}</Text> },
                { head: cells.who_sees, cell: ({ visibility }) => cells.visibility[visibility] },
                {
                  head: cells.owner,
                  label: cells.owner,
                  cell: ({ created_by }) => <ActorName id={created_by} />,
                },
                {
                  head: cells.changed,
                  label: cells.changed,
                  cell: (one) => <Time at={one.updated_at ?? one.created_at} />,
                },
              ]}
            />
          )}
        </Resource>
      </section>
      {query.get('dialog') === 'new' && <NewCell onClose={() => setQuery({ dialog: null })} />}
    </Page>
  )
}

/** From the address, which may hold anything. */
function ownerIn(query: URLSearchParams): string | null {
  const owner = query.get('owner')
  return owner && isUuid(owner) ? owner : null
}

function Filters() {
  const { query } = place.value
  const owner = ownerIn(query)
  const [kind, setKind] = useTypedFilter('kind')
  const [path, setPath] = useTypedFilter('path')
  return (
    <div class="bar">
      <Field label={cells.kind} type="search" value={kind} onInput={setKind} maxlength={128} />
      {query.get('view') !== 'mine' && !owner && (
        <ActorPicker label={cells.owner} value="" onChange={(owner) => owner && setQuery({ owner })} />
      )}
      <Field label={cells.path_starts} type="search" value={path} onInput={setPath} maxlength={256} />
      {!path && (
        <SelectField
          label={cells.order}
          value={query.get('order') === 'changed' ? 'changed' : 'newest'}
          options={[
            { value: 'newest', label: cells.newest },
            { value: 'changed', label: cells.changed_first },
          ]}
          onChange={(order) => setQuery({ order: order === 'changed' ? order : null })}
        />
      )}
      {query.get('view') !== 'mine' && owner && (
        <Button icon="x" onClick={() => setQuery({ owner: null })}>
          {cells.owner} <ActorName id={owner} />
          <span class="hidden-text">{words.remove(cells.owner)}</span>
        </Button>
      )}
    </div>
  )
}
