import type { ComponentType } from 'preact'
import { ActorName } from '../api/actor-name.tsx'
import type { Output } from '../api/client.ts'
import { useCall } from '../api/query.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { draftOf } from '../lib/draft.ts'
import { place, setQuery, to } from '../lib/router.ts'
import type { PageProps } from '../routes.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Facts } from '../ui/facts.tsx'
import { Id } from '../ui/id.tsx'
import { Tabs, titleOf } from '../ui/link.tsx'
import { Badge } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { ErrorNote, Skeleton } from '../ui/resource.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { Tree } from '../ui/tree.tsx'
import { CellMenu } from './cell-menu.tsx'
import { Editor } from './editor.tsx'
import { Items } from './items.tsx'
import { Relations } from './relations.tsx'
import { Sharing } from './sharing.tsx'
import { Timeline } from './timeline.tsx'
import { Why } from './why.tsx'
import './cells.css'

export type Got = Output<'cell_get'>
export type PartProps = { got: Got }

const parts: Record<string, { label: string; Part: ComponentType<PartProps>; needs?: 'can_grant' }> = {
  '': { label: cells.tabs.data, Part: Data },
  relations: { label: cells.tabs.relations, Part: Relations },
  items: { label: cells.tabs.items, Part: Items },
  sharing: { label: cells.tabs.sharing, Part: Sharing },
  why: { label: cells.tabs.why, Part: Why },
  timeline: { label: cells.tabs.timeline, Part: Timeline, needs: 'can_grant' },
}

const countOf = ({ length }: readonly unknown[], isCut: boolean): string | undefined =>
  length === 0 ? undefined : `${length}${isCut ? '+' : ''}`

export default function CellPage({ params: { id = '', tab = '' } }: PageProps) {
  const found = useCall('cell_get', { id })
  const back = { href: to('/cells'), label: cells.title }
  const got = found.data
  const isEditing = place.value.query.get('edit') !== null
  const gone = found.error?.reason === 'cell_not_found' ? found.error : null
  // A person who is editing keeps the text.
  if (!got || (gone && !isEditing))
    return (
      <Page title={found.error ? cells.missing_title : cells.title} back={back}>
        {found.error ? <ErrorNote error={found.error} onRetry={found.retry} /> : <Skeleton lines={5} />}
      </Page>
    )
  const { cell, can_edit, can_grant } = got
  const tabs = Object.entries(parts)
    .filter(([, { needs }]) => !needs || got[needs])
    .map(([key, { label }]) => ({
      href: to(`/cells/${id}${key && `/${key}`}`),
      label,
      count:
        key === 'relations'
          ? countOf(got.fields, got.fields_truncated)
          : key === 'items'
            ? countOf(got.items, got.items_truncated)
            : undefined,
      isCurrent: key === tab,
    }))
  const part = parts[tab]
  const Part = part && (!part.needs || got[part.needs]) ? part.Part : Data
  const label = cellLabel(cell)
  if (isEditing && (can_edit || draftOf(id)))
    return <Editor got={got} gone={gone} onClose={() => setQuery({ edit: null })} />
  return (
    <Page
      title={titleOf(label, tabs)}
      heading={<Text long>{label}</Text>}
      back={back}
      actions={
        <>
          {can_edit && (
            <Button icon="pencil" shortcut="e" onClick={() => setQuery({ edit: '1' })}>
              {cells.edit}
            </Button>
          )}
          {can_grant && (
            <ButtonLink icon="share-2" shortcut="s" href={to(`/cells/${id}/sharing`)}>
              {cells.share}
            </ButtonLink>
          )}
          {(can_grant || can_edit) && <CellMenu got={got} />}
        </>
      }
      about={
        <>
          {cell.kind && <Text>{cell.kind}</Text>}
          <Badge kind={cell.visibility === 'public' ? 'warn' : 'plain'}>
            {cells.visibility[cell.visibility]}
          </Badge>
          <span>{cells.version(cell.version)}</span>
          <Id id={cell.id} />
        </>
      }
      tabs={<Tabs label={cells.parts} tabs={tabs} />}
    >
      {found.error && <ErrorNote error={found.error} isBusy={found.isFetching} onRetry={found.retry} />}
      <Part got={got} />
    </Page>
  )
}

function Data({ got: { cell } }: PartProps) {
  return (
    <div class="cell-data">
      <Tree label={cells.data} of={cell.data} />
      <Facts
        of={[
          [cells.owner, <ActorName key="owner" id={cell.created_by} />],
          cell.path !== null && [cells.path, <Text key="path">{cell.path}</Text>],
          [cells.changed, <Time key="changed" at={cell.updated_at ?? cell.created_at} />],
          cell.updated_by !== null && [cells.changed_by, <ActorName key="by" id={cell.updated_by} />],
        ]}
      />
    </div>
  )
}
