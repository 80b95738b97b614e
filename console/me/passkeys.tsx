import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { DataTable } from '../ui/data-table.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Badge } from '../ui/note.tsx'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'
import { toast } from '../ui/toast.tsx'
import { AddPasskey } from './add-passkey.tsx'
import { RenamePasskey } from './rename-passkey.tsx'
import type { SecurityProps, SignIn } from './security.tsx'

export type Passkey = SignIn['passkeys'][number]
type Open = { dialog: 'add' } | { dialog: 'rename' | 'remove'; passkey: Passkey } | null

export function Passkeys({ of, isOffered }: SecurityProps & { isOffered: boolean }) {
  const [open, setOpen] = useState<Open>(null)
  const close = (): void => setOpen(null)
  return (
    <section class="section">
      <h2>{security.passkeys}</h2>
      <p class="soft">{security.passkeys_about}</p>
      {of.passkeys.length > 0 && (
        <DataTable
          label={security.passkeys}
          rows={of.passkeys}
          keyOf={({ id }) => id}
          columns={[
            { head: security.passkey_name, cell: ({ name }) => <Text>{name}</Text> },
            { head: security.passkey_use, label: security.passkey_use, cell: usesOf },
            {
              head: security.last_used,
              label: security.last_used,
              cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : security.not_used),
            },
            {
              head: security.remove,
              end: true,
              width: '180px',
              cell: (passkey) => (
                <span class="row">
                  {isOffered &&
                    (['rename', 'remove'] as const).map((dialog) => (
                      <Button key={dialog} small onClick={() => setOpen({ dialog, passkey })}>
                        {dialog === 'rename' ? security.passkey_rename : security.remove}
                        <span class="hidden-text">
                          <Text>{passkey.name}</Text>
                        </span>
                      </Button>
                    ))}
                </span>
              ),
            },
          ]}
        />
      )}
      {isOffered && (
        <div>
          <Button onClick={() => setOpen({ dialog: 'add' })}>{security.passkey_add}</Button>
        </div>
      )}
      {open?.dialog === 'add' && <AddPasskey isNeeded={of.second_factor.required} onClose={close} />}
      {open?.dialog === 'rename' && <RenamePasskey passkey={open.passkey} onClose={close} />}
      {open?.dialog === 'remove' && <Remove passkey={open.passkey} onClose={close} />}
    </section>
  )
}

const usesOf = (passkey: Passkey) => (
  <span class="row">
    {(['first_factor', 'second_factor'] as const).map(
      (use) => passkey[use] && <Badge key={use}>{security.passkey_uses[use]}</Badge>,
    )}
  </span>
)

function Remove({ passkey: { id, name }, onClose }: { passkey: Passkey; onClose(): void }) {
  const remove = useSend('account_passkey_remove', {
    spoils: ['account_sign_in_get'],
    done: () => toast(security.passkey_removed),
  })
  const confirm = async (): Promise<void> => {
    if (await remove.send({ passkey_id: id })) onClose()
  }
  return (
    <Confirm
      title={security.passkey_question(name)}
      verb={security.remove}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={remove}
    >
      <p>{security.passkey_remove_about}</p>
    </Confirm>
  )
}
