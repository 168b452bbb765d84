import { SegmentedControl, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { settingsQuery } from '../../../api/settings.ts';
import { CodeBlock } from '../../../components/code-block.tsx';
import { type CodeLanguage, codeLanguages } from './code-snippets.ts';

/** A request as a program in the language that is chosen, with this gateway's own address. */
export function CodeInLanguages({
  what,
  hint,
  code,
  shown,
}: {
  /** Which request it is, for those who hear the page: `A request`. */
  what: string;
  hint: ReactNode;
  code: (language: CodeLanguage, baseUrl: string) => string;
  /** The part of it that is shown, where not all is; copied is all. */
  shown?: (code: string) => string;
}) {
  const [language, setLanguage] = useState<CodeLanguage>('curl');
  const settings = useQuery(settingsQuery);
  const text = code(language, settings.data?.base_url ?? location.origin);
  return (
    <Stack gap="sm">
      <SegmentedControl
        aria-label="Language"
        data={[...codeLanguages]}
        value={language}
        onChange={(value) => setLanguage(value as CodeLanguage)}
        style={{ alignSelf: 'flex-start' }}
      />
      <Text size="sm" c="dimmed">
        {hint}
      </Text>
      <CodeBlock code={text} label={`${what} in ${language}`} {...(shown && { shown: shown(text) })} />
    </Stack>
  );
}
