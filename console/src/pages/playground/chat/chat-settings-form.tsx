import { Select, SimpleGrid, Stack, Switch, Textarea } from '@mantine/core';
import { JsonEditor } from '../json-editor.tsx';
import { ModelPicker } from '../model-picker.tsx';
import { OptionalNumber } from '../optional-number.tsx';
import { type ChatSettings, schemaMistake, toolsMistake } from './chat-request.ts';

interface FormProps {
  readonly settings: ChatSettings;
  readonly change: (change: Partial<ChatSettings>) => void;
}

/** All settings of a chat's requests. */
export function ChatSettingsForm({ settings, change }: FormProps) {
  return (
    <Stack gap="md">
      <ModelPicker path="/v1/chat/completions" value={settings.model} onChange={(model) => change({ model })} />
      <Textarea
        label="System prompt"
        placeholder="You are a helpful assistant."
        value={settings.system}
        onChange={(event) => change({ system: event.currentTarget.value })}
        autosize
        minRows={2}
        maxRows={8}
      />
      <Sampling settings={settings} change={change} />
      <Switch
        label="Stream the answer"
        checked={settings.stream}
        onChange={(event) => change({ stream: event.currentTarget.checked })}
      />
      <Tools settings={settings} change={change} />
      <Switch
        label="Answer by a JSON schema"
        checked={settings.useSchema}
        onChange={(event) => change({ useSchema: event.currentTarget.checked })}
      />
      {settings.useSchema && (
        <JsonEditor
          label="JSON schema"
          value={settings.schema}
          onChange={(schema) => change({ schema })}
          mistake={schemaMistake(settings.schema)}
        />
      )}
    </Stack>
  );
}

function Sampling({ settings, change }: FormProps) {
  return (
    <>
      <SimpleGrid cols={2} spacing="sm">
        <OptionalNumber
          label="Temperature"
          value={settings.temperature}
          onChange={(temperature) => change({ temperature })}
          min={0}
          max={2}
          step={0.1}
        />
        <OptionalNumber
          label="Top P"
          value={settings.topP}
          onChange={(topP) => change({ topP })}
          min={0}
          max={1}
          step={0.05}
        />
        <OptionalNumber
          label="Max tokens"
          value={settings.maxTokens}
          onChange={(maxTokens) => change({ maxTokens })}
          min={1}
          isWhole
        />
        <OptionalNumber label="Seed" value={settings.seed} onChange={(seed) => change({ seed })} min={0} isWhole />
      </SimpleGrid>
      <Select
        label="Reasoning effort"
        placeholder="usual"
        clearable
        data={['none', 'minimal', 'low', 'medium', 'high']}
        value={settings.reasoningEffort === '' ? null : settings.reasoningEffort}
        onChange={(effort) => change({ reasoningEffort: effort ?? '' })}
      />
      <Textarea
        label="Stop at"
        description="One text a line; the answer ends before any of them."
        value={settings.stop}
        onChange={(event) => change({ stop: event.currentTarget.value })}
        autosize
        minRows={1}
        maxRows={4}
      />
    </>
  );
}

function Tools({ settings, change }: FormProps) {
  return (
    <>
      <Switch
        label="Tools"
        checked={settings.useTools}
        onChange={(event) => change({ useTools: event.currentTarget.checked })}
      />
      {settings.useTools && (
        <>
          <Select
            label="Tool choice"
            allowDeselect={false}
            data={['auto', 'required', 'none']}
            value={settings.toolChoice}
            onChange={(choice) => change({ toolChoice: (choice ?? 'auto') as ChatSettings['toolChoice'] })}
          />
          <JsonEditor
            label="Tools as JSON"
            value={settings.tools}
            onChange={(tools) => change({ tools })}
            mistake={toolsMistake(settings.tools)}
          />
        </>
      )}
    </>
  );
}
