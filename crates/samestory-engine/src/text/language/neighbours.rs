//! Languages without a row in the table, listed only so that they are not mistaken for one that has.
//!
//! A Pashto article contains enough Persian words to pass for Persian. If a neighbour explains a text best,
//! the text's language is `und`: that is a partition like any other, and better than mixing Pashto into
//! Persian.

use super::script::Script;

/// A language whose articles become `und`. To support it, move it into the table and add a sample.
pub(super) struct Neighbour {
    /// English name, for readers of the source.
    #[expect(dead_code, reason = "documents the word list")]
    pub(super) name: &'static str,
    /// The script it is written in.
    pub(super) script: Script,
    /// As in [`Language`](super::Language).
    pub(super) words: &'static str,
    /// As in [`Language`](super::Language).
    pub(super) letters: &'static str,
}

/// All neighbours.
pub(super) const NEIGHBOURS: &[Neighbour] = &[
    Neighbour {
        name: "Galician",
        script: Script::Latin,
        words: "de a o que e do da en un para con non unha os no se na por máis as dos como pero ao das á polo \
         pola foi son seu súa ou ser cando moi nos xa tamén está ata iso entre ten dunha nunha é sobre anos \
         despois segundo hai aínda foron antes outros dous sido eles súas onde todos este sen pode dende \
         porque lle nun mentres cun cunha desta deste seus presidente ano dixo polos polas nas aos co ás \
         afirmou desde todo durante dun só persoas tempo declarou parte coa contra sábado están vez mesmo \
         equipo esta lugar primeira xente primeiro semana tres momento país cara pasado podería moito día \
         cada tarde tiña ter así final grupo estaba poder xeito meses maior pouco facer agora millóns fixo \
         venres traballo mes goberno xuño algúns última últimos nin sendo continúa nova algo próximo gran \
         tan muller policía case engadiu era conseguir mellor caso outra todas chegou ben fóra segunda casa \
         ante home outro axuda comentou lles metade importantes calquera",
        letters: "áéíñóúü",
    },
    Neighbour {
        name: "Slovenian",
        script: Script::Latin,
        words: "in je v na da se za so z s pa ki ne ni tudi bi od po kot še o ali iz če do bo k sem ko ob pri \
         lahko že biti bil tem med bilo kar več svoje zaradi dejal pred povedal to ga jih bila tega bodo jo \
         leta tako brez sta si toda vse proti vendar saj le nekaj zdaj ljudi zato smo soboto vedno veliko \
         glede naj začetku znova čemer ker niso prav ter svojo pravi dejala vključno leto zgodilo let kjer \
         pozneje bolj kako zelo nato ta dobro svojega njegova druge ima naprej mestu drugi pomeni enega \
         preden prvi pod zadnjih močno način del državi imel tri kaj petek čas izjemno me podporo nad mora \
         njegov katere teden bili predsednik svoj tej mu težko času",
        letters: "čšž",
    },
    Neighbour {
        name: "Basque",
        script: Script::Latin,
        words: "eta da ez ere du bat dira zen izan den baina dute zuen egin hau oso dela beste edo bere urte baino \
         gehiago esan behar ari nahi ondoren zuten ko azken egiten ek zituen batean duen ditu eman izango \
         en bi lehen dituzte batek duela gabe arabera adierazi dio zela hori zion zuela gisa hartu ziren \
         ikusi baten berri dut hitz dago ezin dugu duten ostean handia buruz an izateko horrek egiteko gure",
        letters: "ñ",
    },
    Neighbour {
        name: "Filipino",
        script: Script::Latin,
        words: "ang ng sa na mga ay at si ni hindi para ito kung siya may nang pa ko niya rin kay kanyang isang \
         mula noong ako din lang sila kanilang",
        letters: "ñ",
    },
    Neighbour {
        name: "Albanian",
        script: Script::Latin,
        words: "të e në i për me një se nga ka që është dhe u më si nuk do kanë pas janë tij edhe ishte ky kjo \
         por deri ai",
        letters: "çë",
    },
    Neighbour {
        name: "Estonian",
        script: Script::Latin,
        words: "ja on ei et see kui oli ta ka mis aga oma kes seda nii välja veel või siis aasta ning selle \
         pärast kuid olid võib mida juba",
        letters: "äõöüšž",
    },
    Neighbour {
        name: "Latvian",
        script: Script::Latin,
        words: "un ir ar no par kas uz ka tas bija kā lai arī pēc bet gan vai tā savu viņš to jau gada tiek nav \
         viņa šo pie būs",
        letters: "āčēģīķļņšūž",
    },
    Neighbour {
        name: "Lithuanian",
        script: Script::Latin,
        words: "ir kad į su iš yra kaip tai bet po jis ne apie buvo dar jau už savo nuo dėl taip ar per jo prie \
         kuris jų bus nei metų",
        letters: "ąčęėįšųūž",
    },
    Neighbour {
        name: "Icelandic",
        script: Script::Latin,
        words: "og að í á er sem til við um ekki það var fyrir en með af hann því þá eru hafa frá þess hún eftir \
         verið þetta ég",
        letters: "áðéíóöúýþæ",
    },
    Neighbour {
        name: "Welsh",
        script: Script::Latin,
        words: "yn y a i o ar yr ei wedi mae bod gan am oedd fod ac eu hyn gyda roedd nid fel r n ôl mewn cael â \
         ond wrth sy un meddai sydd na at gael yw gyfer ni ddydd hynny wnaeth ddim cyn iawn mis nad nhw \
         rhoi ym iddo dim w dywedodd roi mynd yng gwneud erbyn u rhai fe dod bydd bobl hyd hi dros oherwydd \
         beth neu",
        letters: "âêîôûŵŷ",
    },
    Neighbour {
        name: "Irish",
        script: Script::Latin,
        words: "an na ar a i is go le do agus bhí tá ag sé nach leis mar sin gur",
        letters: "áéíóú",
    },
    Neighbour {
        name: "Somali",
        script: Script::Latin,
        words: "oo iyo ka in ku waa ayaa uu ee ay la soo si loo waxa waxaa lagu aan kale u ah waxay ugu inay wax \
         sida mid laga inuu badan dib wuxuu markii ayuu aad yiri kadib ahaan hor sheegay sii iyada isku \
         jiraan gudaha hore leh dadka uga isaga ama marka tahay loogu ma sidoo laakiin ahaa saabsan kaas \
         qof ilaa inta kuwa hal laakin wanaagsan taas kala",
        letters: "",
    },
    Neighbour {
        name: "Hausa",
        script: Script::Latin,
        words: "da na a ya ta ba ne an wani cewa su ce yi mai daga cikin don kuma wanda shi ga ke zuwa sun bayan \
         suka zai kan wannan yana sa za masu tare wa aka wata amma yadda yan lokacin iya gaba ranar abin ko \
         ake game yake ci yanzu kamar hanyar inji inda kawai haka kasance babban baya biyu kai shekaru zama \
         ma har samun matsayin saboda mafi",
        letters: "ɓɗƙ",
    },
    Neighbour {
        name: "Uzbek",
        script: Script::Latin,
        words: "va bu bilan uchun bir ham bo deb edi esa kerak uning keyin qilish haqida u boʻlgan dedi olib kuni \
         oʻz mumkin qarshi qilgan har yil tomonidan juda bergan o shu orqali yoki koʻra ular davom da bor \
         oʻtgan xabar boʻlib ularning ko ikki ega katta qildi eng aytgan unga ta shunday boʻyicha yana \
         yaxshi hamda sabab aytdi biri qanday boshqa oyida kabi yordam olish",
        letters: "",
    },
    Neighbour {
        name: "Turkmen",
        script: Script::Latin,
        words: "we bu bilen bir üçin hem diýip ýaly boldy soň",
        letters: "äçňöşüýž",
    },
    Neighbour {
        name: "Northern Kurdish",
        script: Script::Latin,
        words: "û li di de ku ji bi ew jî bo yê ya wî hat wan re dike xwe ne ev",
        letters: "çêîşû",
    },
    Neighbour {
        name: "Maltese",
        script: Script::Latin,
        words: "li ta il u f dan kien minn għal ma din mill fil lil biex tal kienet fuq",
        letters: "ċġħżà",
    },
    Neighbour {
        name: "Luxembourgish",
        script: Script::Latin,
        words: "de vun an d den en ass datt fir op mat ech hunn dat si ze eng huet net e gouf och vum",
        letters: "äëéü",
    },
    Neighbour {
        name: "Faroese",
        script: Script::Latin,
        words: "og at í á er sum til við um ikki tað var fyri men av hann eru hava frá hon eftir verið hetta eg",
        letters: "áðíóúýæø",
    },
    Neighbour {
        name: "Kyrgyz",
        script: Script::Cyrillic,
        words: "жана бул менен үчүн бир деп боюнча болгон ал эмес тууралуу кийин ошол анын бар да эле болуп деди \
         бирок айтты алып күнү жок чейин башка деген жылы көп алар эки керек биринчи болчу болот мурун гана \
         жакшы акыркы жолу дагы ар каршы эң болду жатат мүмкүн турган анткени өтө жаткан алган же жөнүндө \
         кайра жардам калган келген мен ушул эч катары экенин өзүнүн жерде кетти жыл өткөн чоң биз экинчи \
         айтып берди ичинде эми андан жаңы үй үч берген жатышат тарабынан мындай алуу айтымында билдирди \
         абдан иш жаштагы келип келе жылдан келди кабыл өз мыкты көз күн бери берүү маанилүү кылып көбүрөөк \
         азыр аракет нече ага бою",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёңөү",
    },
    Neighbour {
        name: "Mongolian",
        script: Script::Cyrillic,
        words: "нь байна энэ байгаа бол юм гэж болон оны тухай хийх ба байсан гэсэн уу их дээр олон нэг түүний ч \
         дараа болсон болох бөгөөд талаар хэлсэн болно дахь хэлжээ өмнө ийн байх тэр илүү болж маш руу сард \
         тус хоёр хийсэн д гаригт үед нар мөн нэгэн хувьд хойш жилийн том буй хүн түүнийг сайн би хамгийн \
         ямар хэлэхдээ хэлэв сарын ын тэрээр жил үр биш авсан онд авч",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёөү",
    },
    Neighbour {
        name: "Tatar",
        script: Script::Cyrillic,
        words: "һәм белән өчен бу бер дип иде булган ул да дә соң диде турында аның буенча үз ук бик алар шулай \
         көнне ә ләкин зур мөмкин елда каршы ике вакытта түгел соңгы дәвам итте булды башка үзенең без итә \
         алып тиеш яки аны чөнки кадәр торган яхшы әйтте берничә беренче шул әмма кебек булуын хәзер \
         аларның безнең кеше күп тапкыр белдерде",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёәөүҗңһ",
    },
    Neighbour {
        name: "Bashkir",
        script: Script::Cyrillic,
        words: "һәм менән өсөн был бер тип ине булған ул да һуң буйынса ла тине тураһында уҡ ләкин уның бик улар \
         алып түгел сөнки ике ҙур үҙенең ваҡытта шул хәбәр шулай булды яҡшы нисә һуңғы ә икенсе көнө итте \
         ҡаршы йылда итә беҙ арҡаһында йыл үткән ғына ярҙам уларҙың торған лә кеүек күп килеп булып тиклем \
         дауам тапҡыр беҙҙең иң хәл",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёәөүҙҫғҡңһ",
    },
    Neighbour {
        name: "Tajik",
        script: Script::Cyrillic,
        words: "ва дар аз ки ба бо ин барои то аст кард буд мешавад низ ӯ он гуфт онҳо худ карда намуд вале мо як \
         мебошад бораи баъд шуд ман худро рӯзи дигар дод ҳамчун соли мекунад дорад ҷониби бояд шуда нишон \
         пеш дода ҳам гузашта даст онро сол моҳи дошт ду доранд бошад хоҳад ё шудааст хеле намудани мегӯяд \
         гардид медиҳад ҳамин буданд истифода",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёғӣқӯҳҷ",
    },
    Neighbour {
        name: "Pashto",
        script: Script::Arabic,
        words: "د په چې او کې ته له سره یې دي شوي هم دا دی نه یو کړي دغه شي وي څخه هغه یا به شوی ده خو کړې لپاره \
         ول",
        letters: "اآبپتټثجځچڅحخدډذرړزژږسشښصضطظعغفقکكګلمنڼوهیيېۍئءأؤة",
    },
    Neighbour {
        name: "Sindhi",
        script: Script::Arabic,
        words: "۾ جي کي جو ۽ آهي کان تي اهو به نه آهن لاء جا سان هو هڪ ته ان هن جيڪو ڪري ڪيو",
        letters: "اآبٻڀتٿٽٺثپجڄڃچڇحخدڌڏڊڍذرڙزسشصضطظعغفڦقڪکگڳڱلمنڻوهھءيئ",
    },
    Neighbour {
        name: "Uyghur",
        script: Script::Arabic,
        words: "ۋە بۇ بىر بىلەن ئۇ ئىدى ھەم بولۇپ ئۈچۈن دەپ كېيىن بولغان",
        letters: "ئابپتجچخدرزژسشغفقكگڭلمنھەوۇۆۈۋېىي",
    },
    Neighbour {
        name: "Yiddish",
        script: Script::Hebrew,
        words: "און די איז פון דער אין צו מיט אויף ניט נישט וואס האט דאס א",
        letters: "",
    },
    Neighbour {
        name: "Tigrinya",
        script: Script::Ethiopic,
        words: "ናይ ኣብ እዩ ካብ ናብ ግን ከም እቲ ምስ እቶም ዝነበረ ድማ ነቲ እዚ ኣብቲ ኢሉ ኣሎ ንሱ ስለ ድሕሪ ግዜ እዮም ዘሎ ኣብዚ ሓደ ነይሩ ነገር እውን ዓመት \
         ሰባት ቅድሚ ንናይ ናይቲ ብዛዕባ ብናይ ሰብ ዘለዉ ዝብል ክብል ዝኾነ ክልተ መወዳእታ ካልኦት ናብቲ ተዛሪቡ ኮይኑ ቦታ እንተኾነ እዞም ን ቤት ዘለዎ ክሳብ \
         ኣዝዩ እያ ከምዝበሎ እታ ነይሮም ሕዚ ወይ መዓልቲ ብ ስራሕ ዓብዪ ጥራሕ ዝሓለፈ ከምዚ ነቶም ብዙሕ",
        letters: "",
    },
    Neighbour {
        name: "Samoan",
        script: Script::Latin,
        words: "o le i e ma ua na ia se lea mo ai fa a sa latou lo la aso tagata ina ona mai atu lava lana mea \
         taimi loʻo tele tusa tala lona te nei maua mafai ae uma au pe sili talu fai tausaga luga u ni faia \
         tasi toe isi totonu ui muamua pei ta tulaga auala matua pea taʻua nai lenei vaega ese leai lua \
         matou lelei faapea",
        letters: "",
    },
    Neighbour {
        name: "Chichewa",
        script: Script::Latin,
        words: "ndi kuti pa wa mu ku ya za kwa omwe izi koma ndipo cha la anali ali iye kapena pamene a m komanso \
         ngati kwambiri zomwe ntchito nthawi anatero anthu yemwe pomwe yomwe bwino chifukwa mwa kuchokera \
         anati kukhala ena wake zaka njira komwe malo ma ake yake zambiri nawo ambiri zinthu chomwe monga \
         ili chaka kupita zonse amene lomwe tsiku n mwayi chake mmene dziko mwezi pano pambuyo wamkulu",
        letters: "",
    },
    Neighbour {
        name: "Zulu, Xhosa, Swazi and Ndebele",
        script: Script::Latin,
        words: "kakhulu i e ukuthi kodwa ukuba kanye le kube ngo ku lapho we yakhe ye u ne futhi njalo abantu \
         kusho khona nje ukuze lakhe emva ngemva uthe kokuba njengoba wakhe kutsi phakathi engu indlela \
         kwakhe noma ngayo ngoba wathi ngenxa ngaphambi wase ngaphandle kunye kwaye futsi yena ngomgqibelo \
         kuphela lokhu phambili lo ngendlela ka kwe kuba yabo angu kusukela",
        letters: "",
    },
    Neighbour {
        name: "Tswana and Northern Sotho",
        script: Script::Latin,
        words: "ka a e le o ya ba wa sa ke tsa di se mme tse la re ne bo neng tla pele na ile mo bona ntse leng \
         batho fa nna eo ho gore go hore kwa ga thata rialo",
        letters: "š",
    },
    Neighbour {
        name: "Kinyarwanda",
        script: Script::Latin,
        words: "ku mu n ko y ya muri aho na w wa uko ari kuri kandi yo nyuma kugira ngo ariko nk ati ni by buryo z \
         kuba cyane ry no",
        letters: "",
    },
    Neighbour {
        name: "Bemba",
        script: Script::Latin,
        words: "mu ku pa wa ba kwa elyo ukuti ya pali kuli na ca ilyo sana ne umo ukufuma panuma efyo bwa lya lelo \
         kabili ka kuti muli nshita uyu ukufika",
        letters: "",
    },
    Neighbour {
        name: "Shona",
        script: Script::Latin,
        words: "uye kuti iri zvikuru asi uyo ari akadaro kana kubva uyu apo pashure nekuda nemusi akati vari iyo \
         iyi avo makore kuita chete zvinhu basa kune vanhu mumwe ane kusvika",
        letters: "",
    },
    Neighbour {
        name: "Venda",
        script: Script::Latin,
        words: "vha nga u ya ha na wa khou kha a uri tshi vho i zwi dza hu sa o tsha amba musi yo ḽa zwa bva ri \
         ndi ḓo fhedzi",
        letters: "ḓḽṅṋṱ",
    },
    Neighbour {
        name: "Maori",
        script: Script::Latin,
        words: "e ki ngā i te o a me ana ā ka tētahi mai mō he atu kī ia ko kia tana tino wā tau ai muri kua tēnei \
         roto kei",
        letters: "āēīōū",
    },
    Neighbour {
        name: "Tahitian",
        script: Script::Latin,
        words: "mau e i hoê te a ua o roto no taata parau to na ia ra mai roa ta mea reira au noa râ oia nei ni \
         rahi muri rave",
        letters: "âêîïôûŭǔ",
    },
    Neighbour {
        name: "Tongan",
        script: Script::Latin,
        words: "e ʻa ki ʻo ʻi ha he ko mo ʻe ne ia ke ʻoku ai hono pea kau ngaahi atu ʻikai nau pehē hoko pē ʻene \
         kuo lahi meí taha",
        letters: "áéíóúāēīōūʻ",
    },
    Neighbour {
        name: "Fijian",
        script: Script::Latin,
        words: "e ka o ena dua ni na mai me sa kei a ira ki sega tiko kina era vei oti kaya koya tu ra kena nona \
         gauna rawa vaka sara",
        letters: "",
    },
    Neighbour {
        name: "Ewe",
        script: Script::Latin,
        words: "le ƒe be kple si me la na dzi o nye tso wo nu gblɔ eye ɖe eƒe siwo ŋu kpɔ do ye abe yi va aɖe gake \
         sia ame",
        letters: "ãéíòēŋƒɔɖɛɣʋ",
    },
    Neighbour {
        name: "Wolof",
        script: Script::Latin,
        words: "yi bu ci bi ak ñu ni benn ay am yu di lu ko mu te la ngir doon ba neena defa na ap ginnaaw seen \
         ndax waaye moy mungi",
        letters: "éëñóŋ",
    },
    Neighbour {
        name: "Fulfulde",
        script: Script::Latin,
        words: "nder be ko e o ngam i baawo wi mo no nden en fuu mabbe do don on dum masin maako nde ha wadi haa \
         to ba wakkati duubi mi",
        letters: "ƴɓɗ",
    },
    Neighbour {
        name: "Igbo",
        script: Script::Latin,
        words: "na ka nke ahụ n ọ ndị ya dị maka ma ihe onye otu bụ a kwuru ike ga nwere ime ha iji aka anya ebe \
         oge afọ gara aga",
        letters: "ṅịọụ",
    },
    Neighbour {
        name: "Yoruba",
        script: Script::Latin,
        words: "ti n ni kan wa o a le si fi gba to pe di i lo bi ju e pa yi la lu ta ko ri na ba ro de",
        letters: "àáèéìíòóùúńṣẹọ",
    },
    Neighbour {
        name: "Malagasy",
        script: Script::Latin,
        words: "amin ny ho an ary izy tamin no sy fa ireo dia izay i tsy any avy ilay ao izany iray tany raha hoy \
         azy hoe tao ka izao teo",
        letters: "àé",
    },
    Neighbour {
        name: "Oromo",
        script: Script::Latin,
        words: "kan akka fi irratti ture hin yeroo isaa keessa gara itti tahu garuu jiru kunis irra tokko wal \
         keessatti booda kana malee wajjiin bakka turan nama irrati mana hanga yoo",
        letters: "",
    },
    Neighbour {
        name: "Hmong",
        script: Script::Latin,
        words: "li ntawm rau los ua tias nyob muaj qhov kev tau thiab tus tawm lub hauv txog mus uas cov nws yuav \
         yog hais tsis neeg ib qab tom lwm",
        letters: "",
    },
];
